// Each servo's temperature, voltage and load: the reading, and the last ten minutes as a small line with its limit.

import { element, known, say, set } from "./elements.js";
import { sparkline } from "./sparkline.js";

const READ_MS = 5000;
const LOAD_LIMIT = 60;
const ROOM_C = 20;

export class ServoLines {
  constructor(name) {
    this.name = name;
    this.rows = element("tbody");
    this.words = element("p", { class: "quiet" }, "Each line is ten minutes; the dashed one is the limit.");
    const head = ["Servo", "Temperature", "Supply", "Load"].map((column) => element("th", { scope: "col" }, column));
    this.node = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Servos of ${name}` },
      element("table", { class: "servos" }, element("caption", {}, "Servos"), element("thead", {}, element("tr", {}, ...head)), this.rows), this.words);
    this.cells = new Map();
  }

  // Reads the history anew while its tab is open.
  open() {
    if (this.timer) return;
    const look = async () => {
      if (this.node.getClientRects().length === 0) return;
      const history = await (await fetch("/page/history", { cache: "no-store" })).json();
      this.history = history.find(({ arm }) => arm === this.name);
      this.#showLines();
    };
    look().catch(() => {});
    this.timer = setInterval(() => { if (!document.hidden) look().catch(() => {}); }, READ_MS);
  }

  live(servos) {
    for (const servo of servos) {
      const cells = this.#row(servo.id);
      const load = servo.load_ratio === null ? null : servo.load_ratio * 100;
      const limit = this.history?.temperature_c_max ?? Infinity;
      this.#say(cells.temperature, known(servo.temperature_c, "°C", 0), servo.temperature_c >= limit - 5 ? " hot" : "");
      this.#say(cells.voltage, known(servo.voltage_v, "V", 1));
      this.#say(cells.load, known(load, "%", 0));
      const torque = servo.torque_on === null ? "" : servo.torque_on ? "" : ", limp";
      say(cells.name, `${servo.id}${torque}${servo.error_bits ? `, error bits ${servo.error_bits}` : ""}`);
    }
  }

  #say(cell, text, warning = "") {
    say(cell.words, text + warning);
    set(cell.words, "class", warning ? "warns" : "");
  }

  #row(id) {
    if (this.cells.has(id)) return this.cells.get(id);
    const cell = () => {
      const [words, line] = [element("span"), element("span", { class: "line" })];
      return { words, line, node: element("td", {}, words, line) };
    };
    const cells = { name: element("th", { scope: "row" }), temperature: cell(), voltage: cell(), load: cell() };
    this.rows.append(element("tr", {}, cells.name, cells.temperature.node, cells.voltage.node, cells.load.node));
    this.cells.set(id, cells);
    return cells;
  }

  #showLines() {
    const { samples, temperature_c_max, supply_v } = this.history || { samples: [] };
    if (samples.length === 0) return;
    const volts = supply_v ?? Math.max(1, ...samples.flatMap((sample) => sample.voltage_v.map((v) => v ?? 0)));
    for (const [id, cells] of this.cells) {
      const of = (field) => (sample) => sample[field][sample.ids.indexOf(id)];
      const draw = (cell, field, scale) => cell.line.replaceChildren(sparkline(samples, of(field), { ...scale, label: `${scale.label} of servo ${id} over ten minutes` }));
      draw(cells.temperature, "temperature_c", { low: ROOM_C, high: temperature_c_max + 3, limit: temperature_c_max, label: `Temperature, limit ${temperature_c_max} °C,` });
      draw(cells.voltage, "voltage_v", { low: volts * 0.6, high: volts * 1.2, limit: volts * 0.75, label: `Supply, limit ${(volts * 0.75).toFixed(1)} V,` });
      draw(cells.load, "load_percent", { low: -100, high: 100, limit: LOAD_LIMIT, label: `Load, limit ${LOAD_LIMIT} %,` });
    }
  }
}
