// The paper, the largest thing on the page: the sheet, a camera's picture of it, and a drawing that a hand places.

import { CameraLayer } from "./camera_layer.js";
import { isOperator, verbButton } from "./commands.js";
import { door } from "./door.js";
import { byId, element, set, shape } from "./elements.js";
import { path } from "./lines.js";
import { millimetres } from "./millimetres.js";
import { PlacedDrawing } from "./placing.js";
import { Scrubber } from "./scrub.js";
import { SheetPicture } from "./sheet.js";

const KEYS = " Arrow keys move the drawing by 1 mm, with Shift by 10 mm; plus and minus scale it; comma and full stop turn it.";

let only = null;

export const paper = () => only;

class Paper {
  constructor() {
    this.picture = new SheetPicture();
    this.svg = this.picture.svg;
    this.scrubber = new Scrubber((at) => this.#showScrubbed(at));
    this.camera = new CameraLayer();
    const answer = element("span", { class: "answer", role: "status" });
    this.clean = verbButton("New sheet", () => ({ verb: "new_sheet", arm: this.arm }), answer);
    this.grid = element("button", { type: "button", "aria-pressed": "false", onclick: () => this.#toggleGrid() }, "Grid");
    this.node = element("figure", {}, element("div", { class: "clean" }, answer, this.grid, this.clean), this.svg, this.picture.caption, this.scrubber.node, this.camera.node);
    this.sheets = new Map();
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
    const isDrawing = arm.job && !arm.job.is_over;
    this.clean.hidden = !isOperator() || this.offered !== null || isDrawing || !this.shown || !this.picture.hasInk(arm);
    if (this.arm !== arm.name) {
      this.arm = arm.name;
      this.#redraw();
    }
    if (!this.shown || arm.ink_mm === undefined) return;
    this.picture.live(arm);
    const words = this.offered ? `${this.offered.title}: not drawn yet` : this.picture.words(arm);
    this.picture.describe(words, this.placed?.isMovable ? KEYS : "");
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

  #toggleGrid() {
    set(this.grid, "aria-pressed", this.grid.getAttribute("aria-pressed") !== "true");
    this.#redraw();
  }

  #redraw() {
    const sheet = this.sheets.get(this.arm) || [...this.sheets.values()][0];
    if (!sheet && !this.offered) return;
    this.shown = sheet;
    const size = this.offered ? this.offered.sheet_mm : sheet.size_mm;
    const isSame = Boolean(sheet) && sheet.size_mm.every((side, axis) => side === size[axis]);
    this.placed = this.offered ? new PlacedDrawing(this.offered, Math.max(...size), this.onPlaced) : null;
    set(this.svg, "role", this.placed?.isMovable ? "group" : "img");
    if (this.placed?.isMovable) set(this.svg, "tabindex", "0");
    else this.svg.removeAttribute("tabindex");
    this.svg.classList.toggle("placing", Boolean(this.placed?.isMovable));
    this.camera.lieOn(size);
    this.scrubbed = shape("g", { class: "scrubbed" });
    this.picture.draw(size, isSame ? sheet : null, {
      isOffered: Boolean(this.offered),
      under: [...(isSame ? [this.camera.image] : []), ...(this.grid.getAttribute("aria-pressed") === "true" ? [millimetres(size)] : [])],
      over: this.placed ? [this.placed.node] : [],
      // The whole offered page with its handles, however far outside it lies.
      ...(this.placed ? { box: this.placed.extent() } : {}),
    });
    this.picture.frame.append(this.scrubbed);
    this.placed?.attach(this.svg, this.picture.frame);
  }

  // Shows the pen and the ink at a moment of the offered plan.
  #showScrubbed(at) {
    if (!this.scrubbed) return;
    if (!at) return this.scrubbed.replaceChildren();
    const ink = at.lines.map((xy) => shape("path", { class: "will-be", d: path(xy) }));
    const dot = shape("circle", { class: at.isDown ? "pen down" : "pen", r: this.picture.unit_mm * 0.012, cx: at.x, cy: at.y });
    this.scrubbed.replaceChildren(...ink, dot);
  }
}

export function beginPaper() {
  only = new Paper();
}
