// The arm in space: its chain, its body as the gate models it, and the sheet, in a view that can be rotated.

import { element } from "./elements.js";

const TURN_DEG = 10;
const WIDTH_PX = 640;
const HEIGHT_PX = 420;
const EDGE = 0.85;
// Margin around the arm and its sheet.
const MARGIN_MM = 50;
// Light and dark colours; style sheets do not apply to a canvas.
const COLOURS = [
  { table: "#d5dbe1", edge: "#46505a", body: "#c3ccd5", chain: "#0b5394", tip: "#b3121d" },
  { table: "#333b44", edge: "#b4bec8", body: "#4a5560", chain: "#8cc4ff", tip: "#ff5a64" },
];

export class SpaceView {
  constructor(arm) {
    this.name = arm.name;
    this.yaw = -50;
    this.pitch = 25;
    this.radius_mm = 100;
    this.canvas = element("canvas", {
      width: WIDTH_PX, height: HEIGHT_PX, tabindex: "0", role: "img",
      "aria-label": `${arm.title} in space. Drag it, or use the arrow keys, to look from elsewhere.`,
    });
    this.node = element("details", { class: "space" }, element("summary", {}, `${arm.name} in space`), this.canvas,
      element("p", {}, "Drag to turn it, or use the arrow keys. The wide bodies are what the gate keeps clear of each other and of the table."));
    this.node.addEventListener("toggle", () => this.#draw());
    this.canvas.addEventListener("pointerdown", (event) => this.canvas.setPointerCapture(event.pointerId));
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.canvas.hasPointerCapture(event.pointerId)) this.#turn(event.movementX / 2, event.movementY / 2);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const turns = { ArrowLeft: [-TURN_DEG, 0], ArrowRight: [TURN_DEG, 0], ArrowUp: [0, TURN_DEG], ArrowDown: [0, -TURN_DEG] };
      if (!turns[event.key]) return;
      event.preventDefault();
      this.#turn(...turns[event.key]);
    });
  }

  show(sheet) {
    this.corners = sheet.corners_mm;
  }

  live(arm) {
    this.arm = arm;
    this.#draw();
  }

  #turn(yaw, pitch) {
    this.yaw += yaw;
    this.pitch = Math.max(-5, Math.min(90, this.pitch + pitch));
    this.#draw();
  }

  // Returns a point's coordinates right, up and towards the viewer, in millimetres.
  #toView([x, y, z]) {
    const [yaw, pitch] = [this.yaw * Math.PI / 180, this.pitch * Math.PI / 180];
    const [right, away] = [x * Math.cos(yaw) - y * Math.sin(yaw), x * Math.sin(yaw) + y * Math.cos(yaw)];
    return [right, z * Math.cos(pitch) + away * Math.sin(pitch), z * Math.sin(pitch) - away * Math.cos(pitch)];
  }

  #draw() {
    if (!this.node.open || !this.arm) return;
    const points = [...this.arm.chain_mm, ...(this.corners || [])];
    const far = Math.max(0, ...points.map((point) => Math.hypot(...point)));
    // The radius grows and never shrinks: a picture that changes its scale is hard to read.
    this.radius_mm = Math.max(this.radius_mm, far + MARGIN_MM);
    const scale = EDGE * Math.min(WIDTH_PX / 2, HEIGHT_PX * 0.62) / this.radius_mm;
    const put = (point) => {
      const [right, up] = this.#toView(point);
      return [WIDTH_PX / 2 + right * scale, HEIGHT_PX * 0.66 - up * scale];
    };
    const colour = (name) => COLOURS[matchMedia("(prefers-color-scheme: dark)").matches ? 1 : 0][name];
    const pen = this.canvas.getContext("2d");
    pen.clearRect(0, 0, WIDTH_PX, HEIGHT_PX);
    pen.lineCap = "round";
    pen.lineJoin = "round";
    this.#table(pen, put, colour("table"));
    if (this.corners) this.#polygon(pen, this.corners.map(put), "#ffffff", colour("edge"));
    const bodies = this.arm.body_mm.map(([x0, y0, z0, x1, y1, z1, radius]) => ({
      ends: [[x0, y0, z0], [x1, y1, z1]], radius, depth: this.#toView([(x0 + x1) / 2, (y0 + y1) / 2, (z0 + z1) / 2])[2],
    }));
    // The farthest body is painted first.
    bodies.sort((a, b) => a.depth - b.depth);
    for (const { ends, radius } of bodies) {
      const [from, to] = ends.map(put);
      for (const [wide, paint] of [[2 * radius * scale + 2, colour("edge")], [2 * radius * scale, colour("body")]]) {
        this.#line(pen, [from, to], wide, paint);
      }
    }
    this.#line(pen, this.arm.chain_mm.map(put), 3, colour("chain"));
    const tip = this.arm.chain_mm.at(-1);
    if (tip) {
      pen.fillStyle = colour("tip");
      pen.beginPath();
      pen.arc(...put(tip), 4, 0, 2 * Math.PI);
      pen.fill();
    }
  }

  #table(pen, put, paint) {
    const side = Math.ceil(this.radius_mm / 100) * 100;
    for (let at = -side; at <= side; at += 100) {
      this.#line(pen, [put([at, -side, 0]), put([at, side, 0])], 1, paint);
      this.#line(pen, [put([-side, at, 0]), put([side, at, 0])], 1, paint);
    }
  }

  #polygon(pen, points, fill, edge) {
    pen.beginPath();
    points.forEach((point, at) => (at === 0 ? pen.moveTo(...point) : pen.lineTo(...point)));
    pen.closePath();
    pen.fillStyle = fill;
    pen.strokeStyle = edge;
    pen.lineWidth = 1;
    pen.fill();
    pen.stroke();
  }

  #line(pen, points, wide, paint) {
    pen.beginPath();
    points.forEach((point, at) => (at === 0 ? pen.moveTo(...point) : pen.lineTo(...point)));
    pen.lineWidth = wide;
    pen.strokeStyle = paint;
    pen.stroke();
  }
}
