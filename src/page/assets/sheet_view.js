// The sheet from above: design, plan, ink so far and the pen.

import { element, say, set, shape } from "./elements.js";

const EDGE_MM = 4;

function path(xy) {
  let text = `M${xy[0]} ${xy[1]}`;
  for (let at = 2; at < xy.length; at += 2) text += `L${xy[at]} ${xy[at + 1]}`;
  return text;
}

function length(xy) {
  let sum = 0;
  for (let at = 2; at < xy.length; at += 2) sum += Math.hypot(xy[at] - xy[at - 2], xy[at + 1] - xy[at - 1]);
  return sum;
}

// Returns the first `mm` of a line.
function beginning(xy, mm) {
  const points = [xy[0], xy[1]];
  for (let at = 2; at < xy.length && mm > 0; at += 2) {
    const [dx, dy] = [xy[at] - xy[at - 2], xy[at + 1] - xy[at - 1]];
    const step = Math.hypot(dx, dy);
    const fraction = step > mm ? mm / step : 1;
    points.push(xy[at - 2] + fraction * dx, xy[at - 1] + fraction * dy);
    mm -= step;
  }
  return points;
}

export class SheetView {
  constructor(arm) {
    this.arm = arm;
    this.svg = shape("svg", { role: "img", class: "sheet" });
    this.caption = element("figcaption");
    this.node = element("figure", {}, this.svg, this.caption);
    this.lines = [];
    this.total_mm = 0;
  }

  show(sheet) {
    const [width, height] = sheet.size_mm;
    const [w, h] = [width + 2 * EDGE_MM, height + 2 * EDGE_MM];
    set(this.svg, "viewBox", `${-EDGE_MM} ${-EDGE_MM} ${w} ${h}`);
    const pen = (line) => sheet.pens[line.pen] || { colour: "#000000", width_mm: 0.5 };
    const drawn = (className, line) => shape("path", { class: className, d: path(line.xy_mm) });
    this.design = sheet.design.length;
    this.lines = sheet.plan.map((line) => ({ xy: line.xy_mm, mm: length(line.xy_mm), pen: pen(line) }));
    this.total_mm = this.lines.reduce((sum, line) => sum + line.mm, 0);
    this.ink = this.lines.map((line) => shape("path", { class: "ink", stroke: line.pen.colour, "stroke-width": line.pen.width_mm }));
    this.inked = this.lines.map(() => 0);
    this.dot = shape("circle", { class: "pen", r: 0 });
    const paper = shape("rect", { class: "paper", width, height });
    const all = shape("g", { transform: `translate(0 ${height}) scale(1 -1)` }, paper,
      ...sheet.design.map((line) => drawn("design", line)),
      ...sheet.plan.map((line) => drawn("plan", line)),
      ...this.ink, this.dot);
    this.svg.replaceChildren(all);
    this.sheet = sheet;
  }

  live(arm) {
    if (!this.sheet) return;
    let remaining_mm = arm.ink_mm;
    this.lines.forEach((line, at) => {
      const mm = Math.max(0, Math.min(line.mm, remaining_mm));
      remaining_mm -= line.mm;
      if (mm === this.inked[at]) return;
      this.inked[at] = mm;
      if (mm > 0) set(this.ink[at], "d", path(beginning(line.xy, mm)));
      else this.ink[at].removeAttribute("d");
    });
    this.#pen(arm.tip);
    const percent = this.total_mm > 0 ? Math.round(100 * Math.min(1, arm.ink_mm / this.total_mm)) : 0;
    const text = this.lines.length > 0
      ? `${this.sheet.scene}: ${this.lines.length} strokes planned, ${percent} % drawn`
      : `${this.sheet.scene}: ${this.design} strokes in the design, nothing planned`;
    say(this.caption, text);
    set(this.svg, "aria-label", `Sheet from above. ${text}.`);
  }

  #pen(tip) {
    set(this.dot, "r", tip ? Math.min(6, 1.2 + Math.max(0, tip.height_mm) / 8) : 0);
    if (!tip) return;
    set(this.dot, "cx", tip.sheet_mm[0]);
    set(this.dot, "cy", tip.sheet_mm[1]);
    set(this.dot, "class", tip.height_mm < 0.5 ? "pen down" : "pen");
  }
}
