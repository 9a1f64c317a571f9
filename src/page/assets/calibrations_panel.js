// Calibrations: touches by hand, the proposal that waits for a person's consent, and the accepted ones.

import { isOperator, runVerb, tryVerb, verbButton } from "./commands.js";
import { door } from "./door.js";
import { tell } from "./answers.js";
import { byId, element, say } from "./elements.js";
import { residualPlot } from "./residuals.js";
import { chosenArm } from "./setup_panel.js";

const answer = byId("calibrations-answer");

const calibrate = (action, fields) => ({ verb: "calibrate", action, ...fields });

function withoutNull(...nodes) {
  return nodes.filter((node) => node !== null);
}

function acceptedCard(record) {
  const reasons = record.reasons.map((reason) => element("li", {}, reason));
  return element("article", {}, ...withoutNull(element("p", {}, record.words), reasons.length > 0 ? element("ul", {}, ...reasons) : null, residualPlot(record.residuals_mm)));
}

// Accepts exactly the proposal that is shown: the node compares its key.
function acceptance(proposal) {
  if (proposal.refused) return [element("p", { class: "warns" }, "It cannot be accepted; the reasons are above.")];
  const overridden = element("input", { type: "checkbox" });
  const accept = verbButton("Accept: write it into the file",
    () => calibrate("accept", { shown: proposal.key, overridden: overridden.checked }), answer, refresh);
  const large = proposal.large ? element("label", { class: "check" }, overridden, `I know why the change is so large: ${proposal.large}`) : null;
  return withoutNull(large, accept);
}

function takeBack(proposal, touch, at) {
  const label = `Take back touch ${at + 1} (${touch.role}, ${touch.off_mm === null ? "no fit yet" : `${touch.off_mm.toFixed(2)} mm off`}) and its place`;
  return element("li", {}, verbButton(label, calibrate("take_back", { shown: proposal.key, touch: at + 1 }), answer, refresh));
}

function proposalCard(proposal) {
  const touches = element("details", {}, element("summary", {}, "Touches"), element("ol", {}, ...proposal.touches.map((touch, at) => takeBack(proposal, touch, at))));
  const discard = verbButton("Throw it away", calibrate("discard", { shown: proposal.key }), answer, refresh);
  return element("article", { class: "proposal" }, ...withoutNull(
    element("h3", {}, `Proposed: ${proposal.kind} of ${proposal.scene}, ${proposal.verdict}`),
    element("pre", { tabindex: "0", role: "region", "aria-label": "What was measured" }, proposal.words),
    residualPlot(proposal.touches.map((touch) => touch.off_mm).filter((mm) => mm !== null)),
    proposal.touches.length > 0 ? touches : null,
    ...acceptance(proposal), discard));
}

// Shows the current proposal and the accepted calibrations.
export async function refresh() {
  if (!isOperator()) return;
  try {
    const [proposed, accepted] = [await runVerb(calibrate("show")), await runVerb({ verb: "calibrations" })];
    byId("proposal").replaceChildren(proposed.data ? proposalCard(proposed.data) : element("p", {}, "Nothing is proposed."));
    byId("calibrations-list").replaceChildren(...accepted.data.map(acceptedCard));
    say(byId("calibrations-count"), accepted.text);
  } catch (failure) {
    tell(answer, `Not read: ${failure.message}`, true);
  }
}

let jobs = "";

// An arm that has touched its sheet proposes the sheet's pose, so this refreshes when a job has ended.
export function calibrationsLive(state) {
  const ended = state.arms.filter((arm) => arm.job?.is_over).map((arm) => arm.job.id).join();
  if (ended === jobs) return;
  jobs = ended;
  if (byId("calibrations").open) refresh();
}

async function touch(event) {
  event.preventDefault();
  const mm = byId("touch-mm").value.trim();
  const fields = {
    scene: byId("touch-scene").value,
    what: byId("touch-what").value,
    of: byId("touch-of").value || null,
    mm: mm === "" ? null : Number(mm),
    number: Number(byId("touch-number").value),
    arm: chosenArm("touch-arm"),
  };
  tell(answer, "Reading the joints …");
  await tryVerb(calibrate("touch", fields), answer);
  await refresh();
}

// Torque can be switched off only after a person confirms that a hand holds the arm.
function addTorqueOff() {
  const holds = byId("touch-holds");
  const drop = verbButton("Take torque off: the arms drop", { verb: "torque_off" }, answer, () => {
    holds.checked = false;
    drop.disabled = true;
  });
  drop.disabled = true;
  holds.addEventListener("change", () => { drop.disabled = !holds.checked; });
  byId("touch-limp").append(drop);
}

export function beginCalibrations() {
  const camera = () => calibrate("camera", { scene: byId("touch-scene").value, camera: null });
  byId("touch-buttons").append(verbButton("Find the camera by the scene's tags", camera, answer, refresh));
  byId("calibrations").addEventListener("toggle", () => { if (byId("calibrations").open) refresh(); });
  byId("touch").addEventListener("submit", touch);
  door.addEventListener("session", () => { if (!isOperator()) byId("proposal").replaceChildren(); });
  addTorqueOff();
}
