// Login, and which scenes may move until when.

import { tell } from "./answers.js";
import { isOperator, tryVerb, verbButton } from "./commands.js";
import { door, logIn, logOut, read, session } from "./door.js";
import { byId, element, say, seconds } from "./elements.js";

async function submitLogin(event) {
  event.preventDefault();
  const token = byId("token");
  tell(byId("session-answer"), "Looking at it …");
  try {
    await logIn(token.value.trim());
    tell(byId("session-answer"), "");
  } catch (failure) {
    tell(byId("session-answer"), failure.message, true);
  }
  token.value = "";
}

async function submitLogout() {
  wasLoggedIn = false;
  await logOut().catch((failure) => say(byId("session-answer"), failure.message));
}

// Time before the end of an unused login from which the page says so.
const ENDS_SOON_S = 300;

let wasLoggedIn = false;

function holderWords(identity) {
  return `${identity.name} is logged in here, as ${identity.role}.`;
}

function showSession() {
  const identity = session();
  if (wasLoggedIn && !identity) tell(byId("session-answer"), "The login has ended: log in again.", true);
  wasLoggedIn = identity !== null;
  say(byId("session-words"), identity ? holderWords(identity) : "");
  byId("login").hidden = identity !== null;
  byId("session").hidden = identity === null;
  for (const node of document.querySelectorAll(".operator")) node.hidden = !isOperator();
  if (identity) offerScenes().catch((failure) => say(byId("setup-answer"), failure.message));
}

// Says before a click that the login ends soon.
function showLoginTime({ detail: endsInS }) {
  const identity = session();
  if (!identity) return;
  const end = endsInS <= ENDS_SOON_S ? ` Without use the login ends in ${seconds(endsInS)}.` : "";
  say(byId("session-words"), `${holderWords(identity)}${end}`);
}

async function offerScenes() {
  const { scenes } = await read("/page/scenes");
  for (const id of ["enable-scene", "draw-scene", "jog-scene", "first-scene", "touch-scene"]) {
    const options = scenes.map((scene) => element("option", { selected: scene === "default" }, scene));
    byId(id).replaceChildren(...options);
  }
}

let armNames = "";

// Offers a choice of arms if there are several.
export function offerArms(arms) {
  const names = arms.map((arm) => arm.name);
  if (names.join() === armNames) return;
  armNames = names.join();
  for (const id of ["enable-arm", "draw-arm", "jog-arm", "first-arm", "touch-arm"]) {
    byId(id).replaceChildren(...names.map((name) => element("option", {}, name)));
    byId(id).closest(".arm-choice").hidden = names.length < 2;
  }
}

// Returns the chosen arm, if there is a choice.
export function chosenArm(id) {
  return byId(id).options.length > 1 ? byId(id).value : null;
}

export function beginSetup() {
  byId("login").addEventListener("submit", submitLogin);
  byId("logout").addEventListener("click", submitLogout);
  byId("enable").addEventListener("submit", (event) => {
    event.preventDefault();
    const for_s = Math.round(Number(byId("enable-minutes").value) * 60);
    tell(byId("setup-answer"), "Asking …");
    tryVerb({ verb: "enable", scene: byId("enable-scene").value, meta: null, for_s, arm: chosenArm("enable-arm") }, byId("setup-answer"));
  });
  byId("enable-buttons").append(verbButton("Disable everything", { verb: "disable" }, byId("setup-answer")));
  door.addEventListener("session", showSession);
  door.addEventListener("login-time", showLoginTime);
}
