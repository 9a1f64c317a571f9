// The sheet to scale with the plan, the ink, the pen and what must stay empty, as the page and the view in MCP clients show it
// alike. Ink is dark, the plan thin.

import { element, say, set, shape } from "./elements.js";
import { beginning, length, path, toTenths } from "./lines.js";

// Margin around the sheet, as a fraction of its larger side.
const EDGE = 0.045;
const TEXT = 0.028;
// Shorter ink is a rounding, which round ends would show as a dot.
const LEAST_MM = 0.05;

export class SheetPicture {
  constructor() {
    this.svg = shape("svg", { class: "sheet", preserveAspectRatio: "xMidYMid meet", role: "img" });
    this.caption = element("figcaption", {}, "No sheet yet");
    this.lines = [];
  }

  // Draws a sheet of this size. `sheet` is what is on it, if that is known; under an offered drawing, only what is on the paper is
  // shown. `under` lies below the lines, `over` above them; `box` is what has to be visible besides the sheet.
  draw(size, sheet, { isOffered = false, under = [], over = [], box = [0, 0, ...size] } = {}) {
    this.size = size;
    this.sheet = sheet;
    this.unit_mm = Math.max(...size);
    const [left, low, right, high] = this.#extent(box);
    set(this.svg, "viewBox", [left, size[1] - high, right - left, high - low].map(toTenths).join(" "));
    this.dot = shape("circle", { class: "pen", r: 0 });
    this.frame = shape("g", { transform: `translate(0 ${size[1]}) scale(1 -1)` },
      shape("rect", { class: "paper-sheet", width: size[0], height: size[1] }), ...under,
      ...(sheet ? this.#parts(sheet, isOffered) : []), ...over, this.dot);
    this.svg.replaceChildren(hatching(this.unit_mm), this.frame, ...dimensions(size, this.unit_mm));
  }

  // Shows the ink so far and the pen.
  live(arm) {
    let remaining_mm = arm.ink_mm;
    for (const line of this.lines) {
      const mm = Math.max(0, Math.min(line.mm, remaining_mm));
      remaining_mm -= line.mm;
      if (mm === line.inked_mm) continue;
      line.inked_mm = mm;
      if (mm > LEAST_MM) set(line.ink, "d", path(beginning(line.xy, mm)));
      else line.ink.removeAttribute("d");
    }
    this.#showPen(arm.tip);
  }

  #extent(box) {
    const edge = EDGE * this.unit_mm;
    const [width, height] = this.size;
    return [Math.min(0, box[0]) - edge, Math.min(0, box[1]) - 1.4 * edge, Math.max(width, box[2]) + edge, Math.max(height, box[3]) + edge];
  }

  #parts(sheet, isOffered) {
    const pen = (line) => sheet.pens[line.pen] || { colour: "#000000", width_mm: 0.5 };
    const inked = (line) => shape("path", { class: "ink", stroke: pen(line).colour, "stroke-width": pen(line).width_mm, d: path(line.xy_mm) });
    this.lines = sheet.plan.map((line) => {
      const ink = shape("path", { class: "ink", stroke: pen(line).colour, "stroke-width": pen(line).width_mm });
      return { xy: line.xy_mm, mm: length(line.xy_mm), inked_mm: 0, ink };
    });
    this.total_mm = this.lines.reduce((sum, line) => sum + line.mm, 0);
    this.earlier_mm = sheet.earlier.reduce((sum, line) => sum + length(line.xy_mm), 0);
    const design = isOffered || sheet.plan.length > 0 || sheet.earlier.length > 0 ? [] : sheet.design;
    const plan = isOffered ? [] : sheet.plan;
    const keepOuts = sheet.keep_outs.map(({ name, xy_mm }) => {
      const title = shape("title");
      title.textContent = `${name}: nothing may go there`;
      return shape("g", {}, title, shape("path", { class: "keep-out", d: `${path(xy_mm)}Z` }));
    });
    return [...keepOuts, ...design.map((line) => shape("path", { class: "design", d: path(line.xy_mm) })), ...sheet.earlier.map(inked),
      ...plan.map((line) => shape("path", { class: "plan", d: path(line.xy_mm) })), ...this.lines.map((line) => line.ink)];
  }

  #showPen(tip) {
    const up = tip ? Math.max(0, tip.height_mm) : 0;
    set(this.dot, "r", tip ? (this.unit_mm * (0.009 + Math.min(0.006, up / 5000))).toFixed(2) : 0);
    if (!tip) return;
    set(this.dot, "cx", tip.sheet_mm[0]);
    set(this.dot, "cy", tip.sheet_mm[1]);
    set(this.dot, "class", tip.height_mm < 0.5 ? "pen down" : "pen");
  }

  hasInk(arm) {
    return this.earlier_mm > 0 || (this.lines.length > 0 && arm.ink_mm > 0);
  }

  // Returns what is on the sheet, in words.
  words(arm) {
    const { scene, design } = this.sheet;
    const all_mm = this.earlier_mm + this.total_mm;
    const percent = all_mm > 0 ? Math.round(100 * Math.min(1, (this.earlier_mm + arm.ink_mm) / all_mm)) : 0;
    const drawn = this.lines.length > 0 ? `${percent} % drawn`
      : this.earlier_mm > 0 ? `${Math.round(this.earlier_mm)} mm of ink`
        : design.length > 0 ? `${design.length} strokes in the design, nothing planned` : "empty";
    // The sheet with the plan comes after the state that names it.
    const waits = arm.job?.awaits_approval && this.lines.length > 0 ? "planned, waits for your yes" : drawn;
    return `${scene}: ${waits}`;
  }

  describe(words, keys = "") {
    const [width, height] = this.sheet ? this.sheet.size_mm : this.size;
    say(this.caption, words);
    set(this.svg, "aria-label", `The sheet of ${width} by ${height} mm from above. ${words}.${keys}`);
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
