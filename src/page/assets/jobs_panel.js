// Plans that wait for a person's approval, with their pictures; then the jobs, each with a small picture of what it drew.

import { tell } from "./answers.js";
import { isOperator, tryVerb } from "./commands.js";
import { command, door, file, picture, read, session } from "./door.js";
import { byId, element, moment, seconds, shape } from "./elements.js";
import { again, resume } from "./draw_panel.js";
import { path } from "./lines.js";

const STATE_WORDS = {
  reached: "drawn whole", deviated: "drawn, off its line", stopped: "stopped", refused: "refused", faulted: "ended by a fault", interrupted: "cut short",
  accepted: "accepted", planning: "planning", moving: "under way", held: "held", waiting_for_pen: "waits for a pen", unreadable: "unreadable",
};
const TOOL_WORDS = { stroke: "", frame: "frame of ", align: "align in ", reset: "to rest in ", jog: "jog in ", park: "parked in ", selftest: "self-test in " };

async function addPictures(job, names, parent) {
  for (const name of names) {
    const source = await picture(`/page/jobs/${encodeURIComponent(job)}/${encodeURIComponent(name)}`);
    const image = element("img", { src: source, alt: `${name.replace(/\.png$/, "")} of ${job}` });
    image.addEventListener("load", () => URL.revokeObjectURL(source));
    parent.append(image);
  }
}

function thumbnail(job) {
  if (!job.thumbnail) return element("span", { class: "thumb none", "aria-hidden": "true" });
  const { box_mm: [left, low, right, high], plan, ink } = job.thumbnail;
  const side = Math.max(right - left, high - low, 1);
  const [x, y] = [(left + right - side) / 2, (low + high - side) / 2];
  const svg = shape("svg", { class: "thumb", viewBox: `${x - side * 0.06} ${-y - side * 1.06} ${side * 1.12} ${side * 1.12}`, "aria-hidden": "true" },
    shape("g", { transform: "scale(1 -1)" },
      ...plan.map((xy) => shape("path", { class: "thumb-plan", d: path(xy) })),
      ...ink.map((xy) => shape("path", { class: "thumb-ink", d: path(xy) }))));
  return svg;
}

function stateWords(job) {
  const words = STATE_WORDS[job.state] || job.state;
  if (job.tool !== "stroke" && job.state === "reached") return "done";
  return words;
}

function lineWords(job) {
  const parts = [];
  if (job.total_mm > 0) parts.push(job.drawn_mm < job.total_mm ? `${Math.round(job.drawn_mm)} of ${Math.round(job.total_mm)} mm` : `${Math.round(job.total_mm)} mm`);
  if (job.planned_s > 0) parts.push(seconds(job.planned_s));
  if (job.accepted_ms) parts.push(moment(job.accepted_ms));
  if (job.caller) parts.push(job.caller);
  return parts.join(" · ");
}

function facts(rows) {
  const filled = rows.filter(([, value]) => value);
  return element("dl", {}, ...filled.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function details(job) {
  return facts([
    ["Outcome", job.message], ["Asked for", job.received], ["Understood", job.understood], ["Repairs", job.repairs],
    ["Ended", moment(job.ended_ms)], ["Strokes", job.strokes ? `${job.strokes_done} of ${job.strokes} whole` : ""],
    ["Goes on with", job.resumes], ["Approved", (job.approved || []).join(", ")], ["Plan", job.plan_hash],
  ]);
}

async function showAudit(job, parent) {
  const records = await read(`/page/jobs/${encodeURIComponent(job)}/audit`);
  const rows = records.map((record) => [moment(record.time_ms), record.text]);
  parent.replaceChildren(element("h4", {}, "Audit log"), facts(rows));
}

// Fetches a job's `recording` or `report` and saves it under this ending.
async function fetchFile(job, what, ending, answer) {
  tell(answer, `Fetching the ${what} …`);
  try {
    const blob = await file(`/page/jobs/${encodeURIComponent(job.id)}/${what}`);
    const link = element("a", { href: URL.createObjectURL(blob), download: `${job.id}.${ending}` });
    link.click();
    URL.revokeObjectURL(link.href);
    tell(answer, `${job.id}.${ending} is fetched`);
  } catch (failure) {
    tell(answer, `Not fetched: ${failure.message}`, true);
  }
}

// Carries out the job's plan on a separate simulated arm: no arm of the node moves.
async function replay(job, answer, pictures) {
  tell(answer, "Replaying …");
  try {
    const reply = await command({ verb: "replay", job: job.id });
    tell(answer, `${reply.done ? "" : "Not done: "}${reply.text}`, !reply.done);
    const image = reply.data?.picture
      ? [element("img", { src: `data:image/png;base64,${reply.data.picture}`, alt: `Ink of ${job.id} on the simulated arm` })] : [];
    pictures.replaceChildren(...image);
  } catch (failure) {
    tell(answer, `Not done: ${failure.message}`, true);
  }
}

function row(job) {
  const answer = element("p", { class: "answer", role: "status" });
  const [images, audit, replayed] = [element("div"), element("div"), element("div")];
  const press = (label, onclick, className = "") => element("button", { type: "button", onclick, class: className, "aria-label": `${label} ${job.id}` }, label);
  const draws = isOperator() && job.tool === "stroke";
  const buttons = [
    draws && job.can_resume ? press("Go on", () => resume(job), "main") : null,
    draws ? press("Again", () => again(job)) : null,
  ];
  const more = [
    draws ? press("Replay on a simulated arm", () => replay(job, answer, replayed)) : null,
    job.recording ? press("Recording", () => fetchFile(job, "recording", "mcap", answer)) : null,
    job.recording ? press("Report", () => fetchFile(job, "report", "html", answer)) : null,
  ];
  const box = element("details", {}, element("summary", { "aria-label": `Details of ${job.id}` }, "Details"), details(job),
    element("div", { class: "row" }, ...more), answer, replayed, images, audit);
  box.addEventListener("toggle", () => {
    if (!box.open || audit.childNodes.length > 0) return;
    audit.append(element("p", {}, "Reading …"));
    addPictures(job.id, job.pictures, images).catch(() => {});
    showAudit(job.id, audit).catch((failure) => audit.replaceChildren(element("p", {}, `Audit log not read: ${failure.message}`)));
  });
  const title = `${TOOL_WORDS[job.tool] ?? `${job.tool} in `}${job.title || job.scene || ""}`;
  return element("article", { class: "job", "data-state": job.state },
    thumbnail(job),
    element("div", { class: "job-words" }, element("h3", {}, title || job.id), element("p", {}, `${job.id}: ${stateWords(job)}`), element("p", { class: "quiet" }, lineWords(job))),
    element("div", { class: "row" }, ...buttons), box);
}

async function showJobs() {
  if (!session()) return;
  const list = byId("jobs-list");
  // What a person reads stays, also if it was opened meanwhile.
  const isRead = () => list.querySelector("details[open]") !== null;
  if (isRead()) return;
  try {
    const rows = (await read("/page/jobs")).map(row);
    if (isRead()) return;
    list.replaceChildren(...(rows.length > 0 ? rows : [element("p", { class: "quiet" }, "No jobs yet. What is drawn stands here, to be drawn again.")]));
  } catch (failure) {
    list.replaceChildren(element("p", {}, `Not read: ${failure.message}`));
  }
}

async function judge(verb, plan, buttons) {
  buttons.forEach((button) => { button.disabled = true; });
  const isDone = await tryVerb({ verb, job: plan.job, plan: plan.plan }, byId("approve-answer"));
  if (!isDone) buttons.forEach((button) => { button.disabled = false; });
}

function pendingCard(plan) {
  const images = element("div", { class: "pictures" });
  addPictures(plan.job, plan.pictures, images).catch(() => {});
  const buttons = [
    element("button", { type: "button", class: "main", onclick: () => judge("approve", plan, buttons) }, `Approve ${plan.job}`),
    element("button", { type: "button", onclick: () => judge("refuse", plan, buttons) }, `Refuse ${plan.job}`),
  ];
  const act = isOperator() ? element("div", { class: "row" }, ...buttons) : null;
  const request = plan.received ? element("p", {}, `${plan.caller} asked: ${plan.received}`) : null;
  return element("article", { class: "pending" }, element("h3", {}, `${plan.job} waits for your yes`), act, images, request, element("p", { class: "words" }, plan.words));
}

let shownPending = "";

async function showPending(count) {
  byId("jobs-count").hidden = count === 0;
  byId("jobs-count").textContent = `${count}`;
  byId("jobs-count").setAttribute("aria-label", `${count} waiting`);
  if (session() === null || count === 0) {
    shownPending = "";
    return byId("pending").replaceChildren();
  }
  const plans = await read("/page/pending");
  const key = JSON.stringify(plans);
  if (key === shownPending) return;
  shownPending = key;
  byId("pending").replaceChildren(...plans.map(pendingCard));
}

let headline = "";

// Refreshes when a job begins or ends, and when another plan waits.
export function jobsLive(state) {
  const jobs = state.arms.map((arm) => arm.job && `${arm.job.id} ${arm.job.state}`);
  const next = JSON.stringify([state.waiting, state.pens.length, jobs]);
  if (next === headline) return;
  headline = next;
  showPending(state.waiting + state.pens.length).catch(() => {});
  showJobs();
}

export function beginJobs() {
  door.addEventListener("session", () => {
    byId("jobs-list").replaceChildren();
    headline = "";
  });
  addEventListener("tab", ({ detail }) => { if (detail === "jobs") showJobs(); });
}
