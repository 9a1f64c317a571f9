// Pens that a person changes during a drawing, and its pauses: which pen, what the arm does meanwhile, and the confirmation.

import { isOperator, verbButton } from "./commands.js";
import { door } from "./door.js";
import { byId, element, shape } from "./elements.js";

let shown = "";
let newest = [];

function swatch(pen) {
  const paint = shape("rect", { width: 40, height: 40, fill: pen.colour });
  return shape("svg", { class: "swatch", viewBox: "0 0 40 40", role: "img", "aria-label": `Colour ${pen.colour}` }, paint);
}

function card(pen) {
  const answer = element("p", { class: "answer", role: "status" });
  const confirm = isOperator()
    ? verbButton(pen.is_pause ? "Go on" : `Pen ${pen.pen} ${pen.name} is in: go on`, { verb: "pen", job: pen.job, confirmed: pen.pen }, answer)
    : element("p", {}, "An operator who has logged in lets it go on here.");
  const meanwhile = pen.is_simulated
    ? "The arm is simulated: no hand is needed."
    : "The arm stands where a hand can reach and holds itself; nothing moves until it is said. Take your hands away before.";
  return element("article", { class: "pending pen-change" }, element("h3", {}, pen.is_pause ? "The drawing pauses" : "A pen is to be changed"), swatch(pen),
    element("p", {}, `${pen.job} on ${pen.arm} waits for ${pen.words}.`), element("p", {}, meanwhile), confirm, answer);
}

function show() {
  byId("pens-list").replaceChildren(...newest.map(card));
}

export function pensLive(pens) {
  const key = JSON.stringify(pens);
  if (key === shown) return;
  shown = key;
  newest = pens;
  show();
}

export function beginPens() {
  door.addEventListener("session", show);
}
