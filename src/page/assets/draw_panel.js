// An operator's own drawing: planned as soon as it is chosen, shown on the paper, then drawn exactly as shown.

import { tell } from "./answers.js";
import { isOperator, tryVerb } from "./commands.js";
import { command, door } from "./door.js";
import { contentOf, fromPaste, watchDrops } from "./drawing_source.js";
import { byId, element, say, seconds } from "./elements.js";
import { paper } from "./paper.js";
import { chosenArm } from "./setup_panel.js";
import { openTab } from "./tabs.js";

// After a change, waits for the next one before it plans.
const SETTLES_MS = 350;
const POLL_MS = 100;
const NUMBERS = ["draw-size", "draw-x", "draw-y", "draw-turn"];
// Kinds in which the arm can begin nothing.
const DROP_WORDS = "Drop a file anywhere: SVG, PNG, JPEG, G-code, HP-GL, DXF, JSON";
const PICTURE = /^image\/(png|jpeg)$/;
const BUSY_KINDS = ["planning", "moving", "held", "stopping", "waits_for_person"];

// An earlier job that is resumed or drawn again, instead of a file or text.
let earlier = null;
let files = [];
let fits = false;
let settling = null;
let isPlanning = false;
let isWanted = false;
let shown = null;
let kind = null;
let newest = null;

const answer = () => byId("draw-answer");

function number(id) {
  const text = byId(id).value.trim();
  return text === "" ? null : Number(text);
}

async function source() {
  if (files.length > 0) return { files: await Promise.all(files.map(contentOf)) };
  const text = byId("draw-text").value.trim();
  if (text === "") return null;
  return fromPaste(text);
}

function trim() {
  const [raise_mm, speed_percent] = [number("draw-raise") ?? 0, number("draw-speed") ?? 100];
  return raise_mm === 0 && speed_percent === 100 ? {} : { trim: { raise_mm, speed_percent } };
}

const isPicture = () => files.length === 1 && PICTURE.test(files[0].type);

// Returns how a picture is drawn: its lines, and the time to which it is thinned.
function pictureWishes() {
  const minutes = number("draw-minutes");
  return { design: { style: byId("draw-style").value }, order: minutes === null ? {} : { minutes } };
}

// Returns whether an SVG is chosen: only that has areas.
const isSvg = () => files.some((file) => /\.svg$/i.test(file.name)) || "files" in fromPaste(byId("draw-text").value.trim());

// Returns the paper, and what the form shows of letters and areas.
function moreWishes() {
  const wishes = { paper: byId("draw-paper").value };
  const letters = byId("draw-font").value;
  if (letters === "outlines") wishes.outlines_text = isSvg();
  else if (isSvg() || files.length === 0) wishes.font = letters;
  if (isSvg()) Object.assign(wishes, { fill: byId("draw-fill").value, hide: byId("draw-hide").checked });
  return Object.fromEntries(Object.entries(wishes).filter(([, value]) => value));
}

// Returns what is asked for; null where nothing is chosen.
async function order() {
  if (earlier) return { ...earlier.order, ...trim() };
  const chosen = await source();
  if (!chosen) return null;
  const [x, y] = [number("draw-x"), number("draw-y")];
  if ((x === null) !== (y === null)) throw new Error("say both edges, or none for the middle of the sheet");
  const placement = { size_mm: fits ? null : number("draw-size"), at_mm: x === null ? null : [x, y], rotate_deg: number("draw-turn"), fits };
  const wishes = isPicture() ? pictureWishes() : {};
  return { scene: byId("draw-scene").value, arm: chosenArm("draw-arm"), design: { source: chosen, placement, ...moreWishes(), ...wishes.design }, ...wishes.order, ...trim() };
}

function withdraw() {
  shown = null;
  showPlace();
  byId("offer").hidden = true;
  byId("draw-buttons").replaceChildren();
  paper().offer(null);
}

// Shows the numbers of a place once there is something to place, and what the file is called.
function showPlace() {
  const isChosen = files.length > 0 || byId("draw-text").value.trim() !== "";
  byId("draw-place").hidden = !isChosen || earlier !== null;
  byId("draw-picture").hidden = !isPicture();
  byId("draw-finer").hidden = !isChosen && earlier === null;
  byId("draw-more").hidden = byId("draw-place").hidden;
  for (const node of document.querySelectorAll(".of-areas")) node.hidden = !isSvg();
  byId("draw-outlines").disabled = !isSvg();
  for (const node of document.querySelectorAll(".of-letters")) node.hidden = files.length > 0 && !isSvg();
  say(byId("draw-drop"), files.length > 0 ? files.map((file) => file.name).join(", ") : DROP_WORDS);
}

// Plans what is chosen, once nothing changes any more.
function changed(waits_ms = SETTLES_MS) {
  clearTimeout(settling);
  showPlace();
  // What is moved stays in sight; it cannot be drawn until it is planned there.
  byId("draw-buttons").replaceChildren();
  settling = setTimeout(plan, waits_ms);
}

async function plan() {
  isWanted = true;
  if (isPlanning) return;
  isPlanning = true;
  while (isWanted) {
    isWanted = false;
    try {
      await planOnce();
    } catch (failure) {
      withdraw();
      tell(answer(), `Not planned: ${failure.message}`, true);
    }
  }
  isPlanning = false;
}

async function planOnce() {
  const asked = await order();
  if (!asked) {
    withdraw();
    return tell(answer(), "");
  }
  tell(answer(), "Planning …");
  const reply = await command({ verb: "draw", order: asked });
  if (isWanted) return;
  if (!reply.done) throw new Error(reply.text);
  show(asked, reply.data);
}

function facts(offer) {
  if (!offer.plan) return "";
  const line = `${offer.strokes} strokes, ${Math.round(offer.pen_down_mm)} mm of line, ${seconds(offer.duration_s)}`;
  return `${line}, ${offer.pens.join(", ")}${offer.is_real ? ` · on ${offer.arm}` : ""}`;
}

// Writes the numbers of the shown place beside the fields that are empty, so that they follow.
function showNumbers(offer) {
  const { page_at_mm: at, page_turn_deg: turn } = offer.sheet;
  const values = { "draw-size": offer.size_mm, "draw-x": at?.[0], "draw-y": at?.[1], "draw-turn": turn || 0 };
  for (const [id, value] of Object.entries(values)) byId(id).placeholder = value === undefined ? "" : String(Math.round(value * 10) / 10);
  if (!fits) return;
  fits = false;
  for (const [id, value] of Object.entries(values)) if (id !== "draw-turn" && value !== undefined) byId(id).value = Math.round(value * 10) / 10;
}

function items(title, texts, className) {
  if (texts.length === 0) return [];
  return [element("h3", {}, title), element("ul", { class: className }, ...texts.map((text) => element("li", {}, text)))];
}

// Returns the order that draws what was shown: a picture that was thinned has its ink in place of the time.
function shownOrder({ minutes, ...asked }, { ink_percent }) {
  return ink_percent === undefined ? asked : { ...asked, design: { ...asked.design, ink_percent } };
}

function show(asked, offer) {
  shown = { order: shownOrder(asked, offer), offer };
  if (!earlier) showNumbers(offer);
  paper().offer(offer, earlier ? null : placed);
  const hindrance = offer.hindrance ? [`It cannot begin now: ${offer.hindrance}`] : [];
  byId("offer").replaceChildren(
    element("p", { class: "facts" }, offer.resumes ? `Goes on with ${offer.resumes}. ${facts(offer)}` : facts(offer)),
    ...items("Refused", offer.refusals.map((refusal) => refusal.why), "notes"),
    ...items("Notes", [...hindrance, ...offer.notes, ...(offer.strokes_changed ? [offer.strokes_changed] : [])], ""));
  byId("offer").hidden = false;
  const fit = offer.moves_to_mm ? ` It fits at ${offer.moves_to_mm.join(", ")} mm.`
    : offer.fits_mm ? ` It fits at ${offer.fits_mm} mm${offer.fits_centred ? " in the middle of the sheet" : ""}.` : "";
  tell(answer(), offer.refusals.length > 0 ? `Refused as it lies.${fit}` : "", offer.refusals.length > 0);
  showButtons();
}

// Draw and the frame are there when they can be done.
function showButtons() {
  const can = shown?.offer.plan && shown.offer.refusals.length === 0 && !shown.offer.hindrance && !BUSY_KINDS.includes(kind);
  const isThere = byId("draw-buttons").childNodes.length > 0;
  if (!can) return byId("draw-buttons").replaceChildren();
  if (isThere) return;
  const frame = element("button", { type: "button", onclick: () => begin(true) }, "Show the frame");
  const draw = element("button", { type: "button", class: "main draw", onclick: () => begin(false) }, "Draw");
  byId("draw-buttons").replaceChildren(...(shown.offer.resumes ? [] : [frame]), draw);
}

let isBeginning = false;

// Draws exactly the shown design, revision and plan; or leads the pen round its box.
async function begin(isFrame) {
  if (isBeginning || !shown) return;
  isBeginning = true;
  const { order: asked, offer } = shown;
  byId("draw-buttons").replaceChildren();
  tell(answer(), isFrame ? "Beginning the frame …" : "Beginning …");
  try {
    const { revision, plan, duration_s, orders_seen } = offer;
    const assent = { revision, plan, duration_s, orders_seen };
    const reply = await command({ verb: "draw", order: isFrame ? { ...asked, frame: true } : asked, assent });
    if (!reply.done) throw new Error(reply.text);
    tell(answer(), reply.text);
    if (!isFrame) forget();
  } catch (failure) {
    tell(answer(), `Not begun: ${failure.message}`, true);
    showButtons();
  }
  isBeginning = false;
}

// Empties the form: what was chosen is being drawn, and is under Jobs from now on.
function forget() {
  chooseEarlier(null);
  [files, fits] = [[], false];
  for (const id of ["draw-file", "draw-text", "draw-minutes", "draw-font", "draw-fill", ...NUMBERS]) byId(id).value = "";
  byId("draw-hide").checked = false;
  for (const id of NUMBERS) byId(id).placeholder = "";
  withdraw();
}

// Writes a placement chosen by a hand into the form, and plans it.
function placed({ at_mm, size_mm, rotate_deg }) {
  fits = false;
  for (const [id, value] of [["draw-x", at_mm[0]], ["draw-y", at_mm[1]], ["draw-size", size_mm], ["draw-turn", rotate_deg]]) byId(id).value = value;
  tell(answer(), "Moved: planned anew in a moment");
  changed();
}

function chooseEarlier(next) {
  earlier = next;
  byId("draw-earlier").hidden = earlier === null;
  byId("draw-new").hidden = earlier !== null;
  if (earlier) say(byId("draw-earlier-words"), earlier.words);
}

function offerEarlier(words, asked) {
  chooseEarlier({ words, order: asked });
  openTab("draw");
  changed(0);
}

// Shows the remainder of an arm's unfinished job.
export function resume(job) {
  offerEarlier(`What is left of ${job.id}.`, { arm: job.arm, design: null });
}

// Shows the complete drawing of an earlier job.
export function again(job) {
  offerEarlier(`${job.id} again, from its beginning.`, { scene: job.scene, arm: job.arm, design: null, repeats: job.id, again: true });
}

function choose(given) {
  if (!isOperator()) return tell(byId("session-answer"), "Log in first, then drop it again.", true);
  chooseEarlier(null);
  if (typeof given === "string") [files, byId("draw-text").value] = [[], given];
  else [files, byId("draw-text").value] = [given, ""];
  byId("draw-file").value = "";
  openTab("draw");
  changed(0);
}

// A held plan cannot change, so it is ended, the arm is brought to rest, and the remainder is planned and checked anew.
async function trimHeld(button) {
  const { name } = newest;
  const { id } = newest.job;
  button.disabled = true;
  try {
    if (!await tryVerb({ verb: "stop" }, answer())) return;
    while (newest.job?.id === id && !newest.job.is_over) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    if (!await tryVerb({ verb: "reset", scene: null, arm: name }, answer())) return;
    byId("draw-finer").open = true;
    resume({ id, arm: name });
  } finally {
    button.disabled = false;
  }
}

export function drawLive(state) {
  const arm = state.arms.find((one) => one.name === chosenArm("draw-arm")) || state.arms[0];
  newest = arm;
  byId("draw-trim").hidden = arm.condition.kind !== "held" || arm.job?.tool !== "stroke";
  if (kind === arm.condition.kind) return;
  kind = arm.condition.kind;
  // What kept it from beginning may be over.
  if (shown?.offer.hindrance && !BUSY_KINDS.includes(kind)) return changed();
  showButtons();
}

export function beginDraw() {
  byId("draw-form").addEventListener("submit", (event) => {
    event.preventDefault();
    changed(0);
  });
  byId("draw-form").addEventListener("input", ({ target }) => {
    if (target.id === "draw-file") [files, byId("draw-text").value] = [[...target.files], ""];
    if (target.id === "draw-text") [files, byId("draw-file").value] = [[], ""];
    fits = false;
    changed();
  });
  byId("draw-fit").addEventListener("click", () => {
    fits = true;
    for (const id of ["draw-size", "draw-x", "draw-y"]) byId(id).value = "";
    changed(0);
  });
  byId("draw-middle").addEventListener("click", () => {
    fits = false;
    for (const id of NUMBERS) byId(id).value = "";
    changed(0);
  });
  byId("draw-other").addEventListener("click", () => {
    chooseEarlier(null);
    withdraw();
    changed(0);
  });
  byId("draw-trim").append(element("button", { type: "button", onclick: (event) => trimHeld(event.currentTarget) }, "End here and park, to trim what is left …"));
  watchDrops(choose);
  door.addEventListener("session", () => { if (!isOperator()) withdraw(); });
}
