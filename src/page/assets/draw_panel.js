// An operator's own drawing: previewed first, then drawn exactly as shown.

import { oneAtATime } from "./commands.js";
import { command } from "./door.js";
import { byId, element, say, seconds } from "./elements.js";
import { PlacedSheet } from "./placing.js";
import { chosenArm } from "./setup_panel.js";

// After a drag, waits for the next one before it plans anew.
const SETTLES_MS = 500;

const once = oneAtATime(byId("draw-answer"));
let settling = null;

// An earlier job that is resumed or drawn again, instead of a file or text.
let earlier = null;

function number(id) {
  const text = byId(id).value.trim();
  return text === "" ? null : Number(text);
}

// Reads a file to the byte: text where it is UTF-8, otherwise each byte as the Latin-1 character of its number.
async function content(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { bytes: Array.from(bytes, (byte) => String.fromCharCode(byte)).join("") };
  }
}

async function source() {
  const [file] = byId("draw-file").files;
  if (file) return { files: [{ name: file.name, ...await content(file) }] };
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
    ["Fits at", offer.moves_to_mm ? `${offer.moves_to_mm.join(", ")} mm` : offer.fits_mm ? `${offer.fits_mm} mm${offer.fits_centred ? " in the middle of the sheet" : ""}` : ""],
    ["Plan", offer.plan],
  ];
  const shown = rows.filter(([, value]) => value);
  return element("dl", {}, ...shown.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// Writes a placement chosen by dragging into the form, and previews it.
function placed({ at_mm, size_mm, rotate_deg }) {
  for (const [id, value] of [["draw-x", at_mm[0]], ["draw-y", at_mm[1]], ["draw-size", size_mm], ["draw-turn", rotate_deg]]) byId(id).value = value;
  byId("offer").querySelector(".draw")?.remove();
  say(byId("draw-answer"), "Moved: what is drawn there is planned anew.");
  clearTimeout(settling);
  settling = setTimeout(() => once(async () => preview(await order())), SETTLES_MS);
}

// Creates the sheet on which the drawing can be dragged; a drawing that is resumed keeps its place.
function sheet(offer) {
  if (earlier || !offer.sheet || offer.sheet.lines.length === 0) return null;
  return new PlacedSheet(offer, placed).node;
}

function show(shownOrder, offer) {
  const image = offer.picture ? element("img", { src: `data:image/png;base64,${offer.picture}`, alt: `Plan of ${offer.title}; refused parts are red` }) : null;
  const refusals = offer.refusals.map((refusal) => element("li", {}, refusal.why));
  const notes = [...offer.notes, ...(offer.hindrance ? [`It cannot begin now: ${offer.hindrance}`] : [])];
  const canDraw = offer.plan && offer.refusals.length === 0 && !offer.hindrance;
  const draw = element("button", { type: "button", class: "draw" }, `Draw this on ${offer.arm}`);
  draw.addEventListener("click", () => once(() => begin(shownOrder, offer, draw)));
  const wasFocused = document.activeElement?.classList?.contains("placing");
  const children = [
    element("h3", {}, offer.title), element("div", { class: "views" }, ...[sheet(offer), image].filter(Boolean)), facts(offer),
    ...(refusals.length > 0 ? [element("h4", {}, "Refused"), element("ul", { class: "notes" }, ...refusals)] : []),
    ...(notes.length > 0 ? [element("ul", {}, ...notes.map((note) => element("li", {}, note)))] : []),
    ...(canDraw ? [draw] : []),
  ];
  byId("offer").replaceChildren(...children);
  byId("offer").hidden = false;
  if (wasFocused) byId("offer").querySelector(".placing")?.focus();
}

async function preview(shownOrder) {
  say(byId("draw-answer"), "Planning …");
  const reply = await command({ verb: "draw", order: shownOrder });
  if (!reply.done) {
    byId("offer").hidden = true;
    throw new Error(reply.text);
  }
  show(shownOrder, reply.data);
  say(byId("draw-answer"), reply.data.refusals.length > 0 ? "Refused: see below." : "This is what would be drawn. Nothing moves yet.");
}

// Draws exactly the shown design, revision and plan.
async function begin(shownOrder, offer, button) {
  button.disabled = true;
  const assent = { revision: offer.revision, plan: offer.plan, duration_s: offer.duration_s };
  const reply = await command({ verb: "draw", order: shownOrder, assent });
  if (!reply.done) throw new Error(reply.text);
  byId("offer").hidden = true;
  say(byId("draw-answer"), reply.text);
  chooseEarlier(null);
}

// Chooses what is drawn: an earlier job, or the form's content.
function chooseEarlier(next) {
  earlier = next;
  byId("draw-earlier").hidden = earlier === null;
  byId("draw-new").hidden = earlier !== null;
  if (earlier) say(byId("draw-earlier-words"), earlier.words);
}

function offerEarlier(words, shownOrder) {
  chooseEarlier({ words, order: shownOrder });
  byId("draw").scrollIntoView();
  once(async () => preview(await order()));
}

// Previews the remainder of an arm's unfinished job.
export function resume(job) {
  offerEarlier(`What is left of ${job.id}.`, { arm: job.arm, design: null });
}

// Previews the complete drawing of an earlier job.
export function again(job) {
  offerEarlier(`${job.id} again, from its beginning.`, { scene: job.scene, arm: job.arm, design: null, repeats: job.id, again: true });
}

export function beginDraw() {
  byId("draw-form").addEventListener("submit", (event) => {
    event.preventDefault();
    once(async () => preview(await order()));
  });
  // An offer is valid only for the input for which it was made.
  byId("draw-form").addEventListener("input", () => {
    clearTimeout(settling);
    byId("offer").hidden = true;
  });
  // A browser says nothing of the same file chosen again, and keeps it as it was.
  byId("draw-file").addEventListener("click", () => {
    byId("draw-file").value = "";
    byId("offer").hidden = true;
  });
  byId("draw-other").addEventListener("click", () => {
    chooseEarlier(null);
    byId("offer").hidden = true;
  });
}
