// A drawing of an operator's own: shown first, then drawn exactly as it was shown.

import { oneAtATime } from "./commands.js";
import { command } from "./door.js";
import { byId, element, say, seconds } from "./elements.js";
import { PlacedSheet } from "./placing.js";
import { chosenArm } from "./setup_panel.js";

// A hand that has let go is about to grasp again.
const SETTLES_MS = 500;

const once = oneAtATime(byId("draw-answer"));
let settling = null;

// An earlier job that is gone on with or drawn again, in place of a file or words.
let earlier = null;

function number(id) {
  const text = byId(id).value.trim();
  return text === "" ? null : Number(text);
}

async function source() {
  const [file] = byId("draw-file").files;
  if (file) return { files: [{ name: file.name, text: await file.text() }] };
  const text = byId("draw-text").value.trim();
  if (text === "") throw new Error("choose a file or write some words");
  return { text: { text } };
}

function trim() {
  const [raise_mm, speed_percent] = [number("draw-raise") ?? 0, number("draw-speed") ?? 100];
  return raise_mm === 0 && speed_percent === 100 ? {} : { trim: { raise_mm, speed_percent } };
}

async function order() {
  if (earlier) return { ...earlier.order, ...trim() };
  const [x, y] = [number("draw-x"), number("draw-y")];
  if ((x === null) !== (y === null)) throw new Error("say both edges, or none for the middle of the sheet");
  const placement = {
    size_mm: number("draw-size"),
    at_mm: x === null ? null : [x, y],
    rotate_deg: number("draw-turn"),
    fits: false,
  };
  return { scene: byId("draw-scene").value, arm: chosenArm("draw-arm"), design: { source: await source(), placement }, ...trim() };
}

function facts(offer) {
  const box = offer.box_mm ? `${offer.box_mm[0].join(", ")} to ${offer.box_mm[1].join(", ")} mm` : "";
  const rows = [
    ["On", offer.arm ? `${offer.arm}${offer.is_real ? "" : ", simulated"}` : ""],
    ["Goes on with", offer.resumes],
    ["Strokes", offer.plan ? `${offer.strokes}, ${offer.pen_down_mm} mm of line` : `${offer.strokes}`],
    ["Takes", offer.plan ? seconds(offer.duration_s) : "nothing can be planned"],
    ["Pens", offer.pens.join(", ")],
    ["Size", offer.size_mm ? `${offer.size_mm} mm on a sheet of ${offer.sheet_mm.join(" by ")} mm` : ""],
    ["Place", box],
    ["Fits at", offer.fits_mm ? `${offer.fits_mm} mm` : ""],
    ["Plan", offer.plan],
  ];
  const shown = rows.filter(([, value]) => value);
  return element("dl", {}, ...shown.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// A place that a hand has chosen is typed into the form, and shown anew.
function placed({ at_mm, size_mm, rotate_deg }) {
  for (const [id, value] of [["draw-x", at_mm[0]], ["draw-y", at_mm[1]], ["draw-size", size_mm], ["draw-turn", rotate_deg]]) byId(id).value = value;
  byId("offer").querySelector(".draw")?.remove();
  say(byId("draw-answer"), "Moved: what is drawn there is planned anew.");
  clearTimeout(settling);
  settling = setTimeout(() => once(async () => preview(await order())), SETTLES_MS);
}

// The sheet itself, which a hand may change; a drawing that is gone on with lies where it lies.
function sheet(offer) {
  if (earlier || !offer.sheet || offer.sheet.lines.length === 0) return null;
  return new PlacedSheet(offer, placed).node;
}

function show(wanted, offer) {
  const image = offer.picture ? element("img", { src: `data:image/png;base64,${offer.picture}`, alt: `Plan of ${offer.title}; refused parts are red` }) : null;
  const refusals = offer.refusals.map((refusal) => element("li", {}, refusal.why));
  const notes = [...offer.notes, ...(offer.hindrance ? [`It cannot begin now: ${offer.hindrance}`] : [])];
  const may = offer.plan && offer.refusals.length === 0 && !offer.hindrance;
  const draw = element("button", { type: "button", class: "draw" }, `Draw this on ${offer.arm}`);
  draw.addEventListener("click", () => once(() => begin(wanted, offer, draw)));
  const held = document.activeElement?.classList?.contains("placing");
  const shown = [
    element("h3", {}, offer.title), element("div", { class: "views" }, ...[sheet(offer), image].filter(Boolean)), facts(offer),
    ...(refusals.length > 0 ? [element("h4", {}, "Refused"), element("ul", { class: "notes" }, ...refusals)] : []),
    ...(notes.length > 0 ? [element("ul", {}, ...notes.map((note) => element("li", {}, note)))] : []),
    ...(may ? [draw] : []),
  ];
  byId("offer").replaceChildren(...shown);
  byId("offer").hidden = false;
  if (held) byId("offer").querySelector(".placing")?.focus();
}

async function preview(wanted) {
  say(byId("draw-answer"), "Planning …");
  const told = await command({ verb: "draw", order: wanted });
  if (!told.done) {
    byId("offer").hidden = true;
    throw new Error(told.text);
  }
  show(wanted, told.data);
  say(byId("draw-answer"), told.data.refusals.length > 0 ? "Refused: see below." : "This is what would be drawn. Nothing moves yet.");
}

// The design as it was shown, the revision and the plan that were shown: nothing else is drawn.
async function begin(wanted, offer, button) {
  button.disabled = true;
  const assent = { revision: offer.revision, plan: offer.plan, duration_s: offer.duration_s };
  const told = await command({ verb: "draw", order: wanted, assent });
  if (!told.done) throw new Error(told.text);
  byId("offer").hidden = true;
  say(byId("draw-answer"), told.text);
  of(null);
}

// Chooses what is drawn: an earlier job, or again what the form says.
function of(next) {
  earlier = next;
  byId("draw-earlier").hidden = earlier === null;
  byId("draw-new").hidden = earlier !== null;
  if (earlier) say(byId("draw-earlier-words"), earlier.words);
}

function offerEarlier(words, wanted) {
  of({ words, order: wanted });
  byId("draw").scrollIntoView();
  once(async () => preview(await order()));
}

// Shows what is left of an arm's unfinished job.
export function resume(job) {
  offerEarlier(`What is left of ${job.id}.`, { scene: job.scene, arm: job.arm, design: null });
}

// Shows the drawing of an earlier job, whole.
export function again(job) {
  offerEarlier(`${job.id} again, from its beginning.`, { scene: job.scene, arm: job.arm, design: null, repeats: job.id, again: true });
}

export function beginDraw() {
  byId("draw-form").addEventListener("submit", (event) => {
    event.preventDefault();
    once(async () => preview(await order()));
  });
  // An offer is for what was typed when it was made.
  byId("draw-form").addEventListener("input", () => {
    clearTimeout(settling);
    byId("offer").hidden = true;
  });
  byId("draw-other").addEventListener("click", () => {
    of(null);
    byId("offer").hidden = true;
  });
}
