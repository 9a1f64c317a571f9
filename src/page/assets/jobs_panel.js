// Earlier jobs, and plans that wait for a person's approval.

import { isOperator, tryVerb } from "./commands.js";
import { command, door, picture, read, session } from "./door.js";
import { byId, element, moment } from "./elements.js";
import { again, resume } from "./draw_panel.js";

async function addPictures(job, names, parent) {
  for (const name of names) {
    const source = await picture(`/page/jobs/${encodeURIComponent(job)}/${encodeURIComponent(name)}`);
    const image = element("img", { src: source, alt: `${name.replace(/\.png$/, "")} of ${job}` });
    image.addEventListener("load", () => URL.revokeObjectURL(source));
    parent.append(image);
  }
}

function facts(job) {
  const drawn = job.total_mm > 0 ? `${job.drawn_mm} of ${job.total_mm} mm, ${job.strokes_done} strokes whole` : "";
  const rows = [
    ["Asked by", job.caller],
    ["Received", job.received],
    ["Understood", job.understood],
    ["Repairs", job.repairs === "[]" ? "" : job.repairs],
    ["Accepted", moment(job.accepted_ms)],
    ["Ended", moment(job.ended_ms)],
    ["Plan", job.plan_hash],
    ["Approved", (job.approved || []).join(", ")],
    ["Drawn", drawn],
    ["Goes on with", job.resumes],
  ];
  const filled = rows.filter(([, value]) => value);
  return element("dl", {}, ...filled.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// Returns an operator's buttons for a job; each previews what it would draw.
function buttons(job) {
  if (!isOperator() || job.tool !== "stroke") return [];
  const answer = element("div");
  const press = (label, onclick) => element("button", { type: "button", onclick }, label);
  return [
    job.can_resume ? press(`Go on with ${job.id} …`, () => resume(job)) : null,
    press(`Draw ${job.id} again …`, () => again(job)),
    press(`Replay ${job.id} on a simulated arm`, (event) => replay(job, event.currentTarget, answer)),
    answer,
  ].filter(Boolean);
}

// Carries out the job's plan on a separate simulated arm: no arm of the node moves.
async function replay(job, button, answer) {
  button.disabled = true;
  answer.replaceChildren(element("p", { role: "status" }, "Replaying …"));
  try {
    const reply = await command({ verb: "replay", job: job.id });
    const image = reply.data?.picture
      ? [element("img", { src: `data:image/png;base64,${reply.data.picture}`, alt: `Ink of ${job.id} on the simulated arm` })] : [];
    answer.replaceChildren(element("p", { role: "status" }, `${reply.done ? "" : "Not done: "}${reply.text}`), ...image);
  } catch (failure) {
    answer.replaceChildren(element("p", { role: "status" }, `Not done: ${failure.message}`));
  }
  button.disabled = false;
}

async function showAudit(job, list) {
  const records = await read(`/page/jobs/${encodeURIComponent(job)}/audit`);
  const rows = records.map((record) => [`Audit ${record.number}`, `${moment(record.time_ms)}, ${record.kind}: ${record.text}`]);
  list.replaceChildren(...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function card(job) {
  const images = element("div", { class: "pictures" });
  const audit = element("dl", { class: "audit" });
  const row = element("div", { class: "row" }, ...buttons(job));
  const details = element("details", {},
    element("summary", {}, `${job.id}: ${job.tool || ""} ${job.drawing ? `${job.drawing} in ` : ""}${job.scene || ""}, ${job.state}`),
    element("p", {}, job.message || ""), facts(job), audit, row, images);
  details.addEventListener("toggle", () => {
    if (!details.open || audit.childNodes.length > 0) return;
    addPictures(job.id, job.pictures, images).catch(() => {});
    showAudit(job.id, audit).catch((failure) => audit.replaceChildren(element("dt", {}, "Audit log"), element("dd", {}, `not read: ${failure.message}`)));
  });
  return details;
}

async function showJobs() {
  if (!session()) return;
  const list = byId("jobs-list");
  try {
    const jobs = await read("/page/jobs");
    const cards = jobs.map(card);
    list.replaceChildren(...(cards.length > 0 ? cards : [element("p", {}, "No jobs yet.")]));
  } catch (failure) {
    list.replaceChildren(element("p", {}, `Not read: ${failure.message}`));
  }
}

async function judge(verb, plan, buttons) {
  buttons.forEach((button) => { button.disabled = true; });
  await tryVerb({ verb, job: plan.job, plan: plan.plan }, byId("approve-answer"));
}

function pendingCard(plan) {
  const images = element("div", { class: "pictures" });
  addPictures(plan.job, plan.pictures, images).catch(() => {});
  const buttons = [
    element("button", { type: "button", onclick: () => judge("approve", plan, buttons) }, `Approve ${plan.job}`),
    element("button", { type: "button", onclick: () => judge("refuse", plan, buttons) }, `Refuse ${plan.job}`),
  ];
  const row = isOperator() ? element("div", { class: "row" }, ...buttons) : null;
  const request = plan.received ? element("p", {}, `${plan.caller} asked: ${plan.received}`) : null;
  return element("article", {}, element("p", { class: "words" }, plan.words), request, images, row);
}

let shownPending = "";

async function showPending(count) {
  const isShown = session() !== null && count > 0;
  byId("approve").hidden = !isShown && byId("approve-answer").textContent === "";
  if (!isShown) {
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
  const next = JSON.stringify([state.waiting, jobs]);
  if (next === headline) return;
  headline = next;
  showPending(state.waiting).catch(() => {});
  showJobs();
}

export function beginJobs() {
  byId("jobs-look").addEventListener("click", showJobs);
  door.addEventListener("session", () => {
    byId("jobs").hidden = session() === null;
    byId("jobs-list").replaceChildren();
    headline = "";
  });
}
