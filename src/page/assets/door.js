// The session of the page, and its requests to the node.
//
// The cookie alone is not enough, because a browser sends it to every port of a host. Only this page knows the secret.

const SECRET = "steadyhand-secret";
const CHECK_MS = 5000;

export const door = new EventTarget();
let identity = null;

export function session() {
  return identity;
}

function setIdentity(next) {
  const changed = JSON.stringify(next) !== JSON.stringify(identity);
  identity = next;
  if (changed) door.dispatchEvent(new Event("session"));
}

function secret() {
  return localStorage.getItem(SECRET) || "1";
}

function commandNumber() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function send(path, options) {
  const response = await fetch(path, {
    cache: "no-store",
    ...options,
    headers: { "Steadyhand-Page": secret(), ...options.headers },
  });
  if (response.ok) return response;
  const reply = await response.json().catch(() => ({}));
  if (response.status === 401) setIdentity(null);
  throw new Error(reply.error || reply.message || `the node answers ${response.status}`);
}

async function post(path, body, headers = {}) {
  const response = await send(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers },
  });
  return response.json();
}

// Reads an address; changes nothing.
export async function read(path) {
  return (await send(path, {})).json();
}

export async function file(path) {
  return (await send(path, {})).blob();
}

export async function picture(path) {
  return URL.createObjectURL(await file(path));
}

// Sends an operator's verb once: the node carries no number out twice.
export function command(verb) {
  return post("/page/operate", verb, { "Steadyhand-Command": commandNumber() });
}

// Senses an arm: cameras take pictures, and nothing moves.
export function sense(arm) {
  return post("/page/sense", { arm });
}

// Takes a picture of the sheet before an arm, seen from straight above; nothing moves.
export function sheetPhoto(arm) {
  return post("/page/sheet-photo", { arm });
}

export async function logIn(token) {
  const reply = await post("/page/login", { token });
  localStorage.setItem(SECRET, reply.secret);
  setIdentity({ name: reply.name, role: reply.role });
}

export async function logOut() {
  await post("/page/logout", {});
  localStorage.removeItem(SECRET);
  setIdentity(null);
}

async function check() {
  if (!localStorage.getItem(SECRET)) return setIdentity(null);
  try {
    const { ends_in_s, ...holder } = await read("/page/session");
    setIdentity(holder);
    door.dispatchEvent(new CustomEvent("login-time", { detail: ends_in_s }));
  } catch (failure) {
    // A node that does not answer has not ended the session.
    if (identity === null) localStorage.removeItem(SECRET);
  }
}

export function watchSession() {
  check();
  setInterval(() => { if (identity && !document.hidden) check(); }, CHECK_MS);
  addEventListener("storage", (event) => { if (event.key === SECRET) check(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) check(); });
}
