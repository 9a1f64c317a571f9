// The arm from the side, in the upright plane through its base and the middle of the sheet.

import { element, say, set, shape } from "./elements.js";

const EDGE_MM = 30;

function penWords(tip) {
  if (!tip) return "no scene yet";
  const mm = Math.abs(tip.height_mm).toFixed(1);
  return tip.height_mm < 0 ? `pen on the sheet, pressed ${mm} mm in` : `pen ${mm} mm over the sheet`;
}

export class SideView {
  constructor(arm) {
    this.arm = arm;
    this.table = shape("line", { class: "table" });
    this.paper = shape("polyline", { class: "paper-edge" });
    this.links = shape("polyline", { class: "links" });
    this.joints = shape("g", { class: "joints" });
    this.svg = shape("svg", { role: "img", class: "side-view", viewBox: "-100 -400 500 450" },
      this.table, this.paper, this.links, this.joints);
    this.caption = element("figcaption");
    this.node = element("figure", {}, this.svg, this.caption);
    this.along = [1, 0];
    this.box = null;
  }

  show(sheet) {
    const corners = sheet.corners_mm;
    const centre = [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis], 0) / 4);
    const distance_mm = Math.hypot(...centre) || 1;
    this.along = centre.map((value) => value / distance_mm);
    this.corners = corners;
    this.box = null;
  }

  live(arm) {
    if (arm.chain_mm.length === 0) return;
    const points = arm.chain_mm.map((point) => this.#project(point));
    const paper = (this.corners || []).map((corner) => this.#project(corner)).sort((a, b) => a[0] - b[0]);
    this.#frame([...points, ...paper]);
    set(this.links, "points", points.map((point) => point.join(",")).join(" "));
    set(this.paper, "points", paper.map((point) => point.join(",")).join(" "));
    this.#dots(points);
    const height = penWords(arm.tip);
    say(this.caption, `From the side: ${height}`);
    set(this.svg, "aria-label", `${arm.title} from the side, ${height}.`);
  }

  // Projects a point; the y axis points down, as on a screen.
  #project([x, y, z]) {
    return [Math.round(x * this.along[0] + y * this.along[1]), -Math.round(z)];
  }

  // The frame grows and never shrinks: a picture that changes its scale is hard to read.
  #frame(points) {
    const all = this.box ? [...points, [this.box[0], this.box[1]], [this.box[2], this.box[3]]] : [...points, [0, 0]];
    const [xs, ys] = [all.map((point) => point[0]), all.map((point) => point[1])];
    this.box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    const [left, top, right, bottom] = this.box;
    set(this.svg, "viewBox", `${left - EDGE_MM} ${top - EDGE_MM} ${right - left + 2 * EDGE_MM} ${bottom - top + 2 * EDGE_MM}`);
    for (const [name, value] of Object.entries({ x1: left - EDGE_MM, x2: right + EDGE_MM, y1: 0, y2: 0 })) set(this.table, name, value);
  }

  #dots(points) {
    while (this.joints.childNodes.length < points.length) this.joints.append(shape("circle", { r: 6 }));
    points.forEach(([x, y], at) => {
      const dot = this.joints.childNodes[at];
      set(dot, "cx", x);
      set(dot, "cy", y);
      set(dot, "class", at === points.length - 1 ? "tip" : "joint");
    });
  }
}
