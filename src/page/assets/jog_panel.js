// Jogs: each press is one small step. The node stops the arm if this page is closed before the step has ended.

import { tell } from "./answers.js";
import { isOperator, oneAtATime, runVerb } from "./commands.js";
import { door } from "./door.js";
import { byId, element, say } from "./elements.js";
import { chosenArm } from "./setup_panel.js";

const TIP = ["x", "y", "z"];

const once = oneAtATime(byId("jog-answer"));

function stepSize() {
  return Number(byId("jog-size").value);
}

async function step(axis, by) {
  const scene = byId("jog-scene").value;
  const reply = await runVerb({ verb: "jog", scene, arm: chosenArm("jog-arm"), step: { axis, by } });
  tell(byId("jog-answer"), reply.text);
  await refresh();
}

function buttons(name, axis) {
  return [-1, 1].map((sign) => element("button", {
    type: "button", "aria-label": `${name} ${sign < 0 ? "minus" : "plus"}`, onclick: () => once(() => step(axis, sign * stepSize())),
  }, `${name} ${sign < 0 ? "−" : "+"}`));
}

async function refresh() {
  const data = JSON.parse((await runVerb({ verb: "jogged", scene: byId("jog-scene").value, arm: chosenArm("jog-arm") })).text);
  const place = data.tip_mm.map((mm) => mm.toFixed(1)).join(", ");
  say(byId("jog-place"), `${data.denied ? `${data.denied}. ` : ""}Tip at ${place} mm, ${data.height_mm.toFixed(1)} mm over the sheet.`);
  const names = data.joints.map((joint) => joint.name).join();
  if (byId("jog-joints").dataset.names === names) return;
  byId("jog-joints").dataset.names = names;
  byId("jog-joints").replaceChildren(...data.joints.flatMap((joint, at) => buttons(joint.name, { joint: at })));
}

export function beginJog() {
  byId("jog-tip").replaceChildren(...TIP.flatMap((axis) => buttons(axis, axis)));
  byId("jog").addEventListener("toggle", () => { if (byId("jog").open) once(refresh); });
  for (const id of ["jog-scene", "jog-arm"]) byId(id).addEventListener("change", () => once(refresh));
  door.addEventListener("session", () => { if (!isOperator()) byId("jog").open = false; });
}
