// The way to a first line: its steps in order, each an operator's command that one press sends. Nothing goes on by itself.

import { command } from "./door.js";
import { byId, element, say } from "./elements.js";

const ENABLED_S = 30 * 60;

const scene = () => byId("first-scene").value;

const STEPS = [
  ["Enable the scene for 30 minutes", "A hand stays at the emergency stop from here on.",
    () => ({ verb: "enable", scene: scene(), meta: null, for_s: ENABLED_S, arm: null })],
  ["Visit the sheet", "The arm goes to five points of the sheet and draws a cross in its middle.",
    () => ({ verb: "align", scene: scene(), touch: false })],
  ["Feel the sheet", "It goes down slowly, three times at each of six points, and proposes where the sheet lies. To accept it: steadyhand calibrate show, then steadyhand calibrate accept.",
    () => ({ verb: "align", scene: scene(), touch: true })],
];

let busy = false;

async function take(name, verb, answer) {
  if (busy) return;
  busy = true;
  say(answer, `${name} …`);
  try {
    const told = await command(verb);
    say(answer, `${told.done ? "" : "Not done: "}${told.text}`);
  } catch (failure) {
    say(answer, `Not done: ${failure.message}`);
  }
  busy = false;
}

function step([name, words, verb]) {
  const answer = element("p", { role: "status", class: "words" });
  const button = element("button", { type: "button", onclick: () => take(name, verb(), answer) }, name);
  return element("li", {}, button, element("p", {}, words), answer);
}

export function beginFirstLine() {
  byId("first-steps").replaceChildren(...STEPS.map(step),
    element("li", {}, element("a", { href: "#draw" }, "Draw"), ": preview some words, and draw them as shown."));
}
