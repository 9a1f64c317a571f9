// An offered drawing on the paper that can be dragged, scaled and rotated, with its refused parts. It sends nothing, but passes the
// chosen placement to a callback.

import { shape } from "./elements.js";
import { pairs, path, toTenths } from "./lines.js";

const MOVE_MM = 1;
const FAR_MM = 10;
const TURN_DEG = 5;
const GROWTH = 1.05;
const SIDE_MM = [1, 2000];
// Radius of handles, as a fraction of the sheet.
const HANDLE = 0.02;

function rotated([x, y], deg) {
  const [sin, cos] = [Math.sin(deg * Math.PI / 180), Math.cos(deg * Math.PI / 180)];
  return [x * cos - y * sin, x * sin + y * cos];
}

export class PlacedDrawing {
  // `onChosen` is called with the corner, the longer side and the rotation when a drag ends; without it nothing can be moved.
  constructor(offer, unit, onChosen) {
    const { page_at_mm, page_centre_mm, page_sides_mm, page_turn_deg, lines, places } = offer.sheet;
    this.offered = { centre: page_centre_mm, sides: page_sides_mm.map((side) => Math.max(side, 0.1)), turn: page_turn_deg };
    this.offset = page_at_mm.map((value, axis) => value - page_centre_mm[axis]);
    this.spots = lines.flatMap((one) => pairs(one.xy_mm));
    this.place = { ...this.offered };
    this.onChosen = onChosen;
    this.isMovable = onChosen !== null;
    this.handle_mm = HANDLE * unit;
    this.drawing = shape("g", {}, ...lines.map((one) => shape("path", { class: one.is_refused ? "refused" : "offered", d: path(one.xy_mm) })));
    this.marks = shape("g", { class: "marks" }, ...places.map((place) => mark(place, this.handle_mm)));
    this.node = shape("g", { class: "placed" }, this.drawing, this.marks);
    if (!this.isMovable) return;
    this.outline = shape("polygon", { class: "page-outline" });
    this.corner = shape("circle", { class: "handle", r: this.handle_mm });
    this.knob = shape("circle", { class: "handle turn", r: this.handle_mm });
    this.stem = shape("line", { class: "stem" });
    this.node.append(this.outline, this.stem, this.corner, this.knob);
    this.#draw();
  }

  attach(svg, frame) {
    [this.svg, this.frame] = [svg, frame];
  }

  // Returns the box around the page with its handles: left, low, right, high.
  extent() {
    const [cx, cy] = this.offered.centre;
    const [w, h] = this.offered.sides.map((side) => side / 2);
    const knob = this.isMovable ? [[0, h + 4 * this.handle_mm]] : [];
    const points = [[-w, -h], [w, -h], [w, h], [-w, h], ...knob].map((point) => rotated(point, this.offered.turn));
    const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
    return [cx + Math.min(...xs), cy + Math.min(...ys), cx + Math.max(...xs), cy + Math.max(...ys)];
  }

  #onSheet(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.frame.getScreenCTM().inverse());
    return [at.x, at.y];
  }

  grasp(event) {
    const isOnIt = [this.outline, this.corner, this.knob].includes(event.target) || this.drawing.contains(event.target);
    if (event.button !== 0 || !this.isMovable || !isOnIt) return;
    event.preventDefault();
    this.svg.focus({ preventScroll: true });
    this.svg.setPointerCapture(event.pointerId);
    const begun = { from: this.#onSheet(event), place: this.place };
    const grip = event.target === this.corner ? "scale" : event.target === this.knob ? "turn" : "move";
    const move = (moved) => this.#drag(grip, begun, this.#onSheet(moved));
    const end = () => {
      this.svg.removeEventListener("pointermove", move);
      this.#done();
    };
    this.svg.addEventListener("pointermove", move);
    this.svg.addEventListener("lostpointercapture", end, { once: true });
  }

  #drag(grip, { from, place }, to) {
    const [cx, cy] = place.centre;
    if (grip === "move") return this.#set({ ...place, centre: [cx + to[0] - from[0], cy + to[1] - from[1]] });
    if (grip === "turn") {
      const deg = Math.atan2(to[1] - cy, to[0] - cx) * 180 / Math.PI - 90;
      return this.#set({ ...place, turn: Math.round(deg) });
    }
    const [before, now] = [from, to].map(([x, y]) => Math.hypot(x - cx, y - cy));
    return this.#scale(place, before > 0.1 ? now / before : 1);
  }

  #scale(place, by) {
    const long = Math.max(...place.sides);
    const side = toTenths(Math.min(SIDE_MM[1], Math.max(SIDE_MM[0], long * by)));
    const sides = place.sides.map((one) => one * side / long);
    this.#set({ ...place, sides });
  }

  key(event) {
    if (!this.isMovable) return;
    const step = event.shiftKey ? FAR_MM : MOVE_MM;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const { centre: [cx, cy], turn } = this.place;
    if (moves[event.key]) this.#set({ ...this.place, centre: [cx + moves[event.key][0], cy + moves[event.key][1]] });
    else if (event.key === "+" || event.key === "-") this.#scale(this.place, event.key === "+" ? GROWTH : 1 / GROWTH);
    else if (event.key === "," || event.key === ".") this.#set({ ...this.place, turn: turn + (event.key === "," ? TURN_DEG : -TURN_DEG) });
    else return;
    event.preventDefault();
    this.#done();
  }

  #set(place) {
    this.place = { ...place, centre: place.centre.map(toTenths) };
    this.#draw();
  }

  #done() {
    if (JSON.stringify(this.place) === JSON.stringify(this.offered)) return;
    this.onChosen({ at_mm: this.#corner(), size_mm: toTenths(Math.max(...this.place.sides)), rotate_deg: this.place.turn });
  }

  // Returns the lower left corner of the drawing as it lies now, turned.
  #corner() {
    const [{ centre: [x0, y0], turn }, { centre }] = [this.offered, this.place];
    const [deg, scale] = [this.place.turn - turn, this.#growth()];
    const moved = deg === 0 ? [this.offset] : this.spots.map(([x, y]) => rotated([x - x0, y - y0], deg));
    const low = (axis) => moved.reduce((least, spot) => Math.min(least, spot[axis]), Infinity);
    return centre.map((value, axis) => toTenths(value + low(axis) * scale));
  }

  #growth() {
    return Math.max(...this.place.sides) / Math.max(...this.offered.sides);
  }

  #draw() {
    const [[x0, y0], [x1, y1]] = [this.offered.centre, this.place.centre];
    const scale = this.#growth();
    this.drawing.setAttribute("transform", `translate(${x1} ${y1}) rotate(${this.place.turn - this.offered.turn}) scale(${scale}) translate(${-x0} ${-y0})`);
    const isMoved = JSON.stringify(this.place) !== JSON.stringify(this.offered);
    // Refusals at one place do not apply to another.
    this.marks.setAttribute("class", isMoved ? "marks stale" : "marks");
    const [w, h] = this.place.sides.map((side) => side / 2);
    const at = (x, y) => rotated([x, y], this.place.turn).map((value, axis) => value + [x1, y1][axis]);
    const points = [[-w, -h], [w, -h], [w, h], [-w, h]].map(([x, y]) => at(x, y));
    this.outline.setAttribute("points", points.map((point) => point.join(",")).join(" "));
    const [corner, top, knob] = [points[1], at(0, h), at(0, h + 3 * this.handle_mm)];
    for (const [node, [x, y]] of [[this.corner, corner], [this.knob, knob]]) {
      node.setAttribute("cx", x);
      node.setAttribute("cy", y);
    }
    for (const [name, value] of Object.entries({ x1: top[0], y1: top[1], x2: knob[0], y2: knob[1] })) this.stem.setAttribute(name, value);
  }
}

function mark({ at_mm: [x, y], why }, r) {
  const cross = shape("path", { d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}` });
  const title = shape("title");
  title.textContent = why;
  return shape("g", {}, title, cross);
}
