// The head: what the arm is doing, how far it is, and the one next step. Its words come from the node.

import { tell } from "./answers.js";
import { isOperator, tryVerb } from "./commands.js";
import { ageText, showCondition, showProgress, stateShape, whereText } from "./condition.js";
import { door } from "./door.js";
import { byId, element, say, set } from "./elements.js";
import { openTab } from "./tabs.js";

const OLD_S = 0.5;
const LOST_S = 2;
// Kinds in which a stop's answer is still what is so.
const STOPPED_KINDS = ["stopping", "stopped", "emergency_stop", "fault", "not_connected"];
const STOP_ANSWER_MS = 2000;

let state = null;
let chosen = null;
let isLost = false;
let holdNow = null;
let shownNext = "";
let stopSeenAt = 0;

export function chosenArmOf(value) {
  return value.arms.find((arm) => arm.name === chosen) || value.arms[0];
}

async function press(verb, button) {
  if (button.getAttribute("aria-disabled") === "true") return;
  endStopAnswer();
  set(button, "aria-disabled", true);
  const isDone = await tryVerb(verb, byId("next-answer"));
  set(button, "aria-disabled", false);
  // A hold at the stroke's end may be made one at once.
  if (isDone && verb.verb === "hold" && !verb.now) holdNow = JSON.stringify(state && chosenArmOf(state).condition.next);
  showNext();
}

function nextButton({ label, action }) {
  if (action.open) {
    return element("button", { type: "button", class: "main", onclick: () => openTab(action.open, true) }, label);
  }
  if (!isOperator()) {
    const toLogin = () => {
      openTab("draw");
      byId("token").focus();
    };
    return element("button", { type: "button", class: "main", onclick: toLogin }, `Log in: ${label.toLowerCase()}`);
  }
  const button = element("button", { type: "button", class: "main" }, label);
  button.addEventListener("click", () => press(action.verb, button));
  return button;
}

function showNext() {
  let next = isLost || !state ? null : chosenArmOf(state).condition.next;
  if (holdNow && JSON.stringify(next) !== holdNow) holdNow = null;
  if (next && holdNow) next = { label: "Hold now", action: { verb: { verb: "hold", now: true } } };
  const key = JSON.stringify([next, isOperator()]);
  if (key === shownNext) return;
  shownNext = key;
  byId("next").replaceChildren(...(next?.action ? [nextButton(next)] : []));
}

function showArms() {
  byId("arm-choice").hidden = state.arms.length < 2;
  if (state.arms.length < 2) return;
  const key = JSON.stringify(state.arms.map((arm) => [arm.name, arm.condition.shape, arm.name === chosenArmOf(state).name]));
  if (byId("arm-choice").dataset.key === key) return;
  byId("arm-choice").dataset.key = key;
  const chip = (arm) => {
    const node = element("button", {
      type: "button", "aria-pressed": String(arm.name === chosenArmOf(state).name), "data-colour": arm.condition.colour,
      onclick: () => {
        chosen = arm.name;
        door.dispatchEvent(new CustomEvent("arm", { detail: arm.name }));
        headLive(state);
      },
    }, stateShape(arm.condition.shape), `${arm.name}: ${arm.condition.sentence}`);
    return node;
  };
  byId("arm-choice").replaceChildren(...state.arms.map(chip));
}

// Ends the answer to a stop, unless the stop is still on its way: the newest answer has the place.
function endStopAnswer() {
  const answer = byId("stop-answer");
  if (answer.className !== "") [answer.className, answer.textContent] = ["", ""];
}

// An answer to a stop goes once the arm is no longer stopped.
function clearStopAnswer(arms) {
  const isStopped = arms.some((arm) => STOPPED_KINDS.includes(arm.condition.kind));
  if (byId("stop-answer").className === "" || isStopped) stopSeenAt = performance.now();
  else if (performance.now() - stopSeenAt > STOP_ANSWER_MS) endStopAnswer();
}

export function headLive(value) {
  state = value;
  const arm = chosenArmOf(value);
  say(byId("node"), value.node);
  document.title = `${arm.condition.sentence} · ${value.node}`;
  say(byId("where"), whereText(value.node, arm));
  say(byId("enabled-words"), `Enabled: ${arm.enabled}.`);
  if (!isLost) showCondition(arm.condition);
  showProgress(arm.job);
  showNext();
  showArms();
  clearStopAnswer(value.arms);
}

// Shows how old what is shown is; `silence_s` is the time since the node's last message.
export function showAge(silence_s) {
  const isHeard = Number.isFinite(silence_s);
  const arm = state && chosenArmOf(state);
  const age_s = (arm?.age_ms ?? 0) / 1000 + (isHeard ? silence_s : 0);
  say(byId("connection"), !isHeard ? "connecting" : ageText(age_s, OLD_S));
  byId("connection").classList.toggle("bad", isHeard && age_s >= OLD_S);
  const wasLost = isLost;
  isLost = isHeard && silence_s >= LOST_S;
  if (isLost === wasLost || !state) return;
  showCondition(isLost ? state.lost : arm.condition);
  document.body.classList.toggle("lost", isLost);
  showNext();
}

export function beginHead() {
  door.addEventListener("session", () => {
    tell(byId("next-answer"), "");
    showNext();
  });
}
