// A slider along the time of an offered plan: where the pen is then, how fast, and what is drawn by then.

import { element, say, seconds, set } from "./elements.js";

const FIELDS = 4;
// A tip lower than this draws.
const DOWN_MM = 0.05;

export class Scrubber {
  // `onMoment` is called with what is shown, or with null.
  constructor(onMoment) {
    this.onMoment = onMoment;
    this.track = [];
    this.range = element("input", { type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": "Moment of the plan", oninput: () => this.#look() });
    this.words = element("output", {}, "");
    this.node = element("div", { class: "scrub", hidden: true }, this.range, this.words);
  }

  show(track) {
    this.track = track;
    const count = track.length / FIELDS;
    this.node.hidden = count < 2;
    set(this.range, "max", Math.max(0, count - 1));
    this.range.value = "0";
    this.onMoment(null);
    if (count >= 2) this.#say(0);
  }

  #at(index) {
    const [t, x, y, height] = this.track.slice(index * FIELDS, index * FIELDS + FIELDS);
    return { t, x, y, height };
  }

  #speed(index) {
    if (index === 0) return 0;
    const [from, to] = [this.#at(index - 1), this.#at(index)];
    return to.t > from.t ? Math.hypot(to.x - from.x, to.y - from.y, to.height - from.height) / (to.t - from.t) : 0;
  }

  #say(index) {
    const now = this.#at(index);
    const end = this.#at(this.track.length / FIELDS - 1);
    const pen = now.height < DOWN_MM ? "pen down" : `pen ${now.height.toFixed(1)} mm up`;
    say(this.words, `${now.t.toFixed(1)} of ${seconds(end.t)} · ${Math.round(this.#speed(index))} mm/s · ${pen}`);
    set(this.range, "aria-valuetext", this.words.textContent);
  }

  #look() {
    const index = Number(this.range.value);
    this.#say(index);
    const lines = [];
    let line = [];
    for (let at = 0; at <= index; at += 1) {
      const { x, y, height } = this.#at(at);
      if (height < DOWN_MM) line.push(x, y);
      else if (line.length > 0) line = [];
      if (line.length === 2) lines.push(line);
    }
    const now = this.#at(index);
    this.onMoment({ ...now, isDown: now.height < DOWN_MM, lines: lines.filter((xy) => xy.length > 2) });
  }
}
