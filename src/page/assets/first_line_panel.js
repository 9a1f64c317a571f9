// The steps to a first line, in order. One press sends each step's command, and nothing happens by itself.

import { verbButton } from "./commands.js";
import { byId, element } from "./elements.js";
import { chosenArm } from "./setup_panel.js";
import { openTab } from "./tabs.js";

const ENABLED_S = 30 * 60;

const scene = () => byId("first-scene").value;
const arm = () => chosenArm("first-arm");

const STEPS = [
  ["Enable the scene for 30 minutes", "A hand stays at the emergency stop from here on.",
    () => ({ verb: "enable", scene: scene(), meta: null, for_s: ENABLED_S, arm: arm() })],
  ["Visit the sheet", "The arm goes to five points of the sheet and draws a cross where the drawing is not.",
    () => ({ verb: "align", scene: scene(), arm: arm(), touch: false })],
  ["Feel the sheet", "It goes down slowly, three times at each of six points, and proposes where the sheet lies. Look at the proposal under Calibrations, and accept it there.",
    () => ({ verb: "align", scene: scene(), arm: arm(), touch: true })],
];

function step([name, words, verb]) {
  const answer = element("p", { role: "status", class: "answer words" });
  return element("li", {}, verbButton(name, verb, answer), element("p", {}, words), answer);
}

export function beginFirstLine() {
  byId("first-steps").replaceChildren(...STEPS.map(step),
    element("li", {}, element("button", { type: "button", onclick: () => openTab("draw", true) }, "Draw some words"), element("p", {}, "They are drawn as they are shown.")));
}
