// The sheet as a camera sees it, from straight above: a layer on the paper that a slider fades in.

import { session, sheetPhoto } from "./door.js";
import { element, moment, say, set, shape } from "./elements.js";

const INTERVAL_MS = 5000;

export class CameraLayer {
  constructor() {
    this.image = shape("image", { preserveAspectRatio: "none", opacity: 0 });
    this.range = element("input", { type: "range", max: 100, step: 5, value: 0, "aria-label": "Camera over the paper, in percent", oninput: () => this.#fade() });
    this.words = element("output");
    this.node = element("div", { class: "scrub", hidden: true }, "Camera", this.range, this.words);
  }

  live(arm) {
    if (this.arm !== arm.name) this.image.removeAttribute("href");
    this.arm = arm.name;
    this.node.hidden = !arm.has_camera || session() === null;
    if (!this.node.hidden || this.range.value === "0") return;
    this.range.value = "0";
    this.#fade();
  }

  // Lies on a sheet of this size, whose y goes up.
  lieOn([width, height]) {
    for (const [name, value] of Object.entries({ width, height, transform: `translate(0 ${height}) scale(1 -1)` })) set(this.image, name, value);
  }

  #fade() {
    set(this.image, "opacity", this.range.value / 100);
    if (!this.timer) this.#look();
  }

  // Takes pictures as long as they are seen.
  async #look() {
    this.timer = null;
    if (this.range.value === "0") return say(this.words, "");
    this.timer = setTimeout(() => this.#look(), INTERVAL_MS);
    if (document.hidden) return;
    const { photo, picture, why } = await sheetPhoto(this.arm).catch((failure) => ({ why: failure.message }));
    if (picture) set(this.image, "href", picture);
    else this.image.removeAttribute("href");
    say(this.words, picture ? `${photo.camera}, ${moment(photo.at_ms)}` : `No picture: ${why}`);
  }
}
