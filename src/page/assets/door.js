// Who has logged in, and how the page asks the node for something.
//
// The cookie alone opens nothing: a browser sends it to every port of a host. The secret beside it is this page's alone.

const SECRET = "steadyhand-secret";
const CHECK_MS = 5000;

export const door = new EventTarget();
let identity = null;

export function session() {
  return identity;
}

function become(next) {
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
  const told = await response.json().catch(() => ({}));
  if (response.status === 401) become(null);
  throw new Error(told.error || told.message || `the node answers ${response.status}`);
}

async function post(path, body, headers = {}) {
  const response = await send(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers },
  });
  return response.json();
}

// Reads what is there; changes nothing.
export async function read(path) {
  return (await send(path, {})).json();
}

export async function picture(path) {
  return URL.createObjectURL(await (await send(path, {})).blob());
}

// Sends one operator's verb, once: the node does no number twice.
export function command(verb) {
  return post("/page/operate", verb, { "Steadyhand-Command": commandNumber() });
}

// Has an arm sensed: cameras take pictures, and nothing moves.
export function sense(arm) {
  return post("/page/sense", { arm });
}

export async function logIn(token) {
  const told = await post("/page/login", { token });
  localStorage.setItem(SECRET, told.secret);
  become({ name: told.name, role: told.role });
}

export async function logOut() {
  await post("/page/logout", {});
  localStorage.removeItem(SECRET);
  become(null);
}

async function check() {
  if (!localStorage.getItem(SECRET)) return become(null);
  try {
    become(await read("/page/session"));
  } catch (failure) {
    // A node that does not answer has ended no session.
    if (identity === null) localStorage.removeItem(SECRET);
  }
}

export function watchSession() {
  check();
  setInterval(() => { if (identity && !document.hidden) check(); }, CHECK_MS);
  addEventListener("storage", (event) => { if (event.key === SECRET) check(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) check(); });
}
