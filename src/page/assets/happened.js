// What happened since the page was opened, the newest first, a line each.

import { byId, element, milliseconds } from "./elements.js";

const LINES_MAX = 60;

const previous = new Map();

function stopWords(stop) {
  const name = stop.emergency ? "Emergency stop" : "Stop";
  const idle = stop.was_held ? "a held motion was ended" : "the arm was not moving";
  const first = stop.was_held || stop.first_frame_ms === null ? idle : `first frame after ${milliseconds(stop.first_frame_ms)}`;
  const still = stop.standstill_ms === null ? "" : `, standing after ${milliseconds(stop.standstill_ms)}`;
  return `${name} of ${stop.by}: ${first}${still}, standstill ${stop.verified ? "read back" : "NOT read back"}`;
}

function add(time_ms, text) {
  const at = new Date(time_ms);
  const list = byId("happened");
  list.prepend(element("li", { title: text }, element("time", { datetime: at.toISOString() }, at.toLocaleTimeString()), ` ${text}`));
  while (list.childNodes.length > LINES_MAX) list.lastChild.remove();
}

function changes(arm, before) {
  const name = before === undefined || arm.several ? `${arm.name}: ` : "";
  const { condition, job, stop, stops_done } = arm;
  const words = condition.cause ? `${condition.sentence}: ${condition.cause}` : condition.sentence;
  if (!before) return [words];
  const lines = [];
  if (job?.is_over && (before.job !== job.id || !before.isOver)) lines.push(`${name}${job.id}, ${job.words.split("\n")[0]}`);
  if (stop && stops_done !== before.stops_done) lines.push(name + stopWords(stop));
  if (words !== before.words) lines.push(name + words);
  return lines;
}

export function happenedLive(state) {
  for (const arm of state.arms) {
    const { condition, job, stops_done } = arm;
    for (const line of changes({ ...arm, several: state.arms.length > 1 }, previous.get(arm.name))) add(state.time_ms, line);
    const words = condition.cause ? `${condition.sentence}: ${condition.cause}` : condition.sentence;
    previous.set(arm.name, { words, job: job?.id, isOver: Boolean(job?.is_over), stops_done });
  }
}
