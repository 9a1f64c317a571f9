// Joints as bars between their ends.

import { element, say, set, shape } from "./elements.js";

// Warns of a joint this close to its limit.
const NEAR_LIMIT_DEG = 5;

export class JointBars {
  constructor(name) {
    this.rows = new Map();
    this.list = element("div", { class: "joints" });
    this.node = element("div", {}, element("h3", {}, "Joints"), this.list);
    this.name = name;
  }

  live(joints) {
    for (const joint of joints) this.#show(joint, this.#row(joint.name));
  }

  #row(name) {
    if (this.rows.has(name)) return this.rows.get(name);
    const fill = shape("rect", { class: "at", y: 1, height: 8, width: 1.6 });
    const zero = shape("line", { class: "zero", y1: 0, y2: 10 });
    const bar = shape("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img" },
      shape("rect", { class: "range", y: 3, width: 100, height: 4 }), zero, fill);
    const words = element("span", { class: "angle" });
    this.list.append(element("span", { class: "joint-name" }, name), bar, words);
    const row = { bar, fill, zero, words };
    this.rows.set(name, row);
    return row;
  }

  #show(joint, { bar, fill, zero, words }) {
    const { angle_deg, lower_deg, upper_deg, speed_deg_s } = joint;
    const place = (deg) => 100 * Math.max(0, Math.min(1, (deg - lower_deg) / (upper_deg - lower_deg)));
    const isNear = Math.min(angle_deg - lower_deg, upper_deg - angle_deg) < NEAR_LIMIT_DEG;
    set(fill, "x", (place(angle_deg) * 0.984).toFixed(1));
    for (const end of ["x1", "x2"]) set(zero, end, place(0).toFixed(1));
    set(bar, "class", isNear ? "bar near" : "bar");
    set(bar, "aria-label", `${joint.name} of ${this.name} between ${lower_deg.toFixed(0)}° and ${upper_deg.toFixed(0)}°`);
    const moving = Math.abs(speed_deg_s) > 1 ? ` · ${Math.round(speed_deg_s)}°/s` : "";
    say(words, `${angle_deg.toFixed(1)}°${isNear ? " near its end" : ""}${moving}`);
    set(words, "title", `${lower_deg.toFixed(0)}° to ${upper_deg.toFixed(0)}°`);
  }
}
