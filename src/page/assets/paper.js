// The paper, the largest thing on the page: the sheet to scale with the plan, the ink, the pen, what must stay empty, and a drawing
// that a hand places. Ink is dark, the plan thin.

import { CameraLayer } from "./camera_layer.js";
import { door } from "./door.js";
import { byId, element, say, set, shape } from "./elements.js";
import { beginning, length, path, toTenths } from "./lines.js";
import { PlacedDrawing } from "./placing.js";
import { Scrubber } from "./scrub.js";

// Margin around the sheet, as a fraction of its larger side.
const EDGE = 0.045;
const TEXT = 0.028;
const KEYS = "Arrow keys move the drawing by 1 mm, with Shift by 10 mm; plus and minus scale it; comma and full stop turn it.";

let only = null;

export const paper = () => only;

class Paper {
  constructor() {
    this.svg = shape("svg", { class: "sheet", preserveAspectRatio: "xMidYMid meet" });
    this.caption = element("figcaption", {}, "No sheet yet");
    this.scrubber = new Scrubber((at) => this.#showScrubbed(at));
    this.camera = new CameraLayer();
    this.node = element("figure", {}, this.svg, this.caption, this.scrubber.node, this.camera.node);
    this.sheets = new Map();
    this.lines = [];
    this.offered = null;
    this.placed = null;
    byId("paper").append(this.node);
    this.svg.addEventListener("pointerdown", (event) => this.placed?.grasp(event));
    this.svg.addEventListener("keydown", (event) => this.placed?.key(event));
    door.addEventListener("arm", ({ detail }) => {
      this.arm = detail;
      this.#redraw();
    });
  }

  // A sheet may arrive before its arm.
  sheet(sheet) {
    this.sheets.set(sheet.arm, sheet);
    if (this.arm === undefined || this.arm === sheet.arm) this.#redraw();
  }

  live(arm) {
    this.camera.live(arm);
    if (this.arm !== arm.name) {
      this.arm = arm.name;
      this.#redraw();
    }
    if (!this.shown || arm.ink_mm === undefined) return;
    let remaining_mm = arm.ink_mm;
    for (const line of this.lines) {
      const mm = Math.max(0, Math.min(line.mm, remaining_mm));
      remaining_mm -= line.mm;
      if (mm === line.inked_mm) continue;
      line.inked_mm = mm;
      if (mm > 0) set(line.ink, "d", path(beginning(line.xy, mm)));
      else line.ink.removeAttribute("d");
    }
    this.#showPen(arm.tip);
    this.#describe(arm);
  }

  // Shows an offered drawing, which a hand may place if `onPlaced` is given; without an offer, the sheet as it is.
  offer(offer, onPlaced = null) {
    const hadFocus = document.activeElement === this.svg;
    this.offered = offer?.sheet?.lines.length > 0 ? offer : null;
    this.onPlaced = onPlaced;
    this.#redraw();
    this.scrubber.show(this.offered?.sheet.track || []);
    if (hadFocus && this.placed) this.svg.focus();
  }

  #redraw() {
    const sheet = this.sheets.get(this.arm) || [...this.sheets.values()][0];
    if (!sheet && !this.offered) return;
    this.shown = sheet;
    const size = this.offered ? this.offered.sheet_mm : sheet.size_mm;
    const unit = Math.max(...size);
    const isSame = Boolean(sheet) && sheet.size_mm.every((side, axis) => side === size[axis]);
    this.unit_mm = unit;
    this.placed = this.offered ? new PlacedDrawing(this.offered, unit, this.onPlaced) : null;
    const [left, low, right, high] = this.#extent(size, unit);
    set(this.svg, "viewBox", [left, size[1] - high, right - left, high - low].map(toTenths).join(" "));
    set(this.svg, "role", this.placed?.isMovable ? "group" : "img");
    if (this.placed?.isMovable) set(this.svg, "tabindex", "0");
    else this.svg.removeAttribute("tabindex");
    this.svg.classList.toggle("placing", Boolean(this.placed?.isMovable));
    this.camera.lieOn(size);
    this.frame = shape("g", { transform: `translate(0 ${size[1]}) scale(1 -1)` },
      shape("rect", { class: "paper-sheet", width: size[0], height: size[1] }), ...(isSame ? [this.camera.image] : []),
      ...(isSame ? this.#sheetParts(sheet) : []), ...(this.placed ? [this.placed.node] : []));
    this.dot = shape("circle", { class: "pen", r: 0 });
    this.scrubbed = shape("g", { class: "scrubbed" });
    this.frame.append(this.dot, this.scrubbed);
    this.placed?.attach(this.svg, this.frame);
    this.svg.replaceChildren(hatching(unit), this.frame, ...dimensions(size, unit));
  }

  // Makes the sheet visible, and the whole offered page with its handles, however far outside it lies.
  #extent([width, height], unit) {
    const edge = EDGE * unit;
    const box = this.placed ? this.placed.extent() : [0, 0, width, height];
    return [Math.min(0, box[0]) - edge, Math.min(0, box[1]) - 1.4 * edge, Math.max(width, box[2]) + edge, Math.max(height, box[3]) + edge];
  }

  #sheetParts(sheet) {
    const pen = (line) => sheet.pens[line.pen] || { colour: "#000000", width_mm: 0.5 };
    const inked = (line) => shape("path", { class: "ink", stroke: pen(line).colour, "stroke-width": pen(line).width_mm, d: path(line.xy_mm) });
    this.lines = sheet.plan.map((line) => {
      const ink = shape("path", { class: "ink", stroke: pen(line).colour, "stroke-width": pen(line).width_mm });
      return { xy: line.xy_mm, mm: length(line.xy_mm), inked_mm: 0, ink };
    });
    this.total_mm = this.lines.reduce((sum, line) => sum + line.mm, 0);
    this.earlier_mm = sheet.earlier.reduce((sum, line) => sum + length(line.xy_mm), 0);
    const isPlanned = sheet.plan.length > 0;
    // Under an offered drawing, only what is on the paper is shown.
    const design = this.offered || isPlanned || sheet.earlier.length > 0 ? [] : sheet.design;
    const plan = this.offered ? [] : sheet.plan;
    const keepOuts = sheet.keep_outs.map(({ name, xy_mm }) => {
      const title = shape("title");
      title.textContent = `${name}: nothing may go there`;
      return shape("g", {}, title, shape("path", { class: "keep-out", d: `${path(xy_mm)}Z` }));
    });
    return [...keepOuts, ...design.map((line) => shape("path", { class: "design", d: path(line.xy_mm) })), ...sheet.earlier.map(inked),
      ...plan.map((line) => shape("path", { class: "plan", d: path(line.xy_mm) })), ...this.lines.map((line) => line.ink)];
  }

  #showPen(tip) {
    if (!this.dot) return;
    const up = tip ? Math.max(0, tip.height_mm) : 0;
    set(this.dot, "r", tip ? (this.unit_mm * (0.009 + Math.min(0.006, up / 5000))).toFixed(2) : 0);
    if (!tip) return;
    set(this.dot, "cx", tip.sheet_mm[0]);
    set(this.dot, "cy", tip.sheet_mm[1]);
    set(this.dot, "class", tip.height_mm < 0.5 ? "pen down" : "pen");
  }

  #describe(arm) {
    const { scene, size_mm: [width, height], design } = this.shown;
    const all_mm = this.earlier_mm + this.total_mm;
    const percent = all_mm > 0 ? Math.round(100 * Math.min(1, (this.earlier_mm + arm.ink_mm) / all_mm)) : 0;
    const drawn = this.lines.length > 0 ? `${percent} % drawn`
      : this.earlier_mm > 0 ? `${Math.round(this.earlier_mm)} mm of ink`
        : design.length > 0 ? `${design.length} strokes in the design, nothing planned` : "empty";
    // The sheet with the plan comes after the state that names it.
    const waits = arm.job?.awaits_approval && this.lines.length > 0 ? "planned, waits for your yes" : drawn;
    const shown = this.offered ? `${this.offered.title}: not drawn yet` : `${scene}: ${waits}`;
    say(this.caption, shown);
    set(this.svg, "aria-label", `The sheet of ${width} by ${height} mm from above. ${shown}.${this.placed?.isMovable ? ` ${KEYS}` : ""}`);
  }

  // Shows the pen and the ink at a moment of the offered plan.
  #showScrubbed(at) {
    if (!this.scrubbed) return;
    if (!at) return this.scrubbed.replaceChildren();
    const ink = at.lines.map((xy) => shape("path", { class: "will-be", d: path(xy) }));
    const dot = shape("circle", { class: at.isDown ? "pen down" : "pen", r: this.unit_mm * 0.012, cx: at.x, cy: at.y });
    this.scrubbed.replaceChildren(...ink, dot);
  }
}

// The pattern of what must stay empty: stripes, so that colour is not all that tells.
function hatching(unit) {
  const step = unit / 40;
  const line = shape("path", { d: `M0 0V${step}`, class: "hatch", "stroke-width": step / 2 });
  return shape("defs", {}, shape("pattern", { id: "hatch", width: step, height: step, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, line));
}

// The sheet's sizes beside its edges.
function dimensions([width, height], unit) {
  const at = (x, y, text, turn) => {
    const node = shape("text", { class: "size", x, y, "font-size": unit * TEXT, "text-anchor": "middle", ...(turn ? { transform: `rotate(-90 ${x} ${y})` } : {}) });
    node.textContent = text;
    return node;
  };
  return [at(width / 2, height + unit * EDGE * 0.8, `${width} mm`), at(-unit * EDGE * 0.4, height / 2, `${height} mm`, true)];
}

export function beginPaper() {
  only = new Paper();
}
