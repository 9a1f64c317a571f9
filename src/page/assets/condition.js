// The words, the colour and the shape of what an arm is doing, as the page's head and the view in MCP clients have them alike.

import { byId, say, seconds, set, shape } from "./elements.js";
import { STATE_SHAPES } from "./shapes.js";

export function stateShape(name) {
  return shape("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", "data-shape": name },
    shape("path", { d: STATE_SHAPES[name] || STATE_SHAPES.ring, fill: "currentColor", "fill-rule": "evenodd" }));
}

export function showCondition(condition) {
  set(document.querySelector(".head"), "data-colour", condition.colour);
  set(document.querySelector(".head"), "data-kind", condition.kind);
  say(byId("sentence"), condition.sentence);
  say(byId("cause"), condition.cause || "");
  set(byId("cause"), "title", condition.cause || "");
  if (byId("shape").firstChild?.dataset.shape !== condition.shape) byId("shape").replaceChildren(stateShape(condition.shape));
}

export function showProgress(job) {
  const isRunning = Boolean(job) && !job.is_over && job.total_s > 0;
  byId("progress-box").hidden = !isRunning;
  if (!isRunning) return;
  const done = Math.min(1, job.done_s / job.total_s);
  set(byId("progress"), "value", done.toFixed(3));
  const left = job.eta_s > 0 ? `${seconds(job.eta_s)} left` : "";
  const counted = job.of > 0 ? `${job.done} of ${job.of}` : "";
  say(byId("progress-words"), [`${Math.floor(100 * done)} %`, left, counted].filter(Boolean).join(" · "));
}

export function whereText(node, arm) {
  return `· ${node} · ${arm.title} · enabled: ${arm.enabled}${arm.holder ? ` · ${arm.holder} has it` : ""}`;
}

export function ageText(age_s, old_s) {
  return age_s >= old_s ? `last heard ${seconds(age_s)} ago` : "live";
}
