// One arm: its warnings, joints and servos, the arm from the side and in space, and a closer look by its cameras and its bus.

import { isOperator, verbButton } from "./commands.js";
import { door, sense, session } from "./door.js";
import { LiveTable, byId, element } from "./elements.js";
import { JointBars } from "./joint_bars.js";
import { ServoLines } from "./servo_lines.js";
import { SideView } from "./side_view.js";
import { SpaceView } from "./space_view.js";

const SENSE_INTERVAL_MS = 5000;
// Kinds in which an arm can be brought to rest, and would move.
const CAN_REST = ["standing", "stopped", "fault", "limp"];

class ArmPanel {
  constructor(arm) {
    this.name = arm.name;
    this.notes = element("ul", { class: "notes" });
    this.answer = element("p", { class: "answer", role: "status" });
    this.senseButton = element("button", { type: "button", onclick: () => this.#sense() }, `Look closer at ${arm.name}: cameras and bus`);
    this.repeats = element("input", { type: "checkbox", onchange: () => this.#senseRepeatedly() });
    this.repeatLabel = element("label", { class: "check" }, this.repeats, `and again every ${SENSE_INTERVAL_MS / 1000} s`);
    this.sensed = element("div");
    this.reset = verbButton("Bring to rest", { verb: "reset", scene: null, arm: arm.name }, this.answer);
    this.side = new SideView(arm);
    this.space = new SpaceView(arm);
    this.joints = new JointBars(arm.name);
    this.servos = new ServoLines(arm.name);
    this.node = element("div", { class: "arm" }, this.notes, element("div", { class: "row" }, this.reset), this.answer, this.joints.node, this.servos.node,
      this.side.node, this.space.node, element("div", { class: "row" }, this.senseButton, this.repeatLabel), this.sensed);
    door.addEventListener("session", () => this.#showControls());
    this.#showControls();
  }

  open() {
    this.servos.open();
  }

  #showControls() {
    this.senseButton.hidden = session() === null;
    this.repeatLabel.hidden = session() === null;
    if (session()) return;
    this.repeats.checked = false;
    this.sensed.replaceChildren();
  }

  // Senses again and again while the page is visible: cameras take pictures, and nothing moves.
  #senseRepeatedly() {
    clearTimeout(this.timer);
    if (!this.repeats.checked) return;
    if (!document.hidden && !this.senseButton.disabled) this.#sense();
    this.timer = setTimeout(() => this.#senseRepeatedly(), SENSE_INTERVAL_MS);
  }

  async #sense() {
    this.senseButton.disabled = true;
    try {
      const result = await sense(this.name);
      const images = result.pictures.map((picture, at) => element("img", { src: picture, alt: `Picture ${at + 1} of what ${this.name} has drawn, or of a camera with the sheet that was found` }));
      this.sensed.replaceChildren(element("p", { class: "words" }, result.text), ...busTable(this.name, result.bus), ...images);
    } catch (failure) {
      this.sensed.replaceChildren(element("p", {}, `Not done: ${failure.message}`));
    }
    this.senseButton.disabled = false;
  }

  showSheet(sheet) {
    this.side.show(sheet);
    this.space.show(sheet);
  }

  live(arm, isChosen) {
    this.node.hidden = !isChosen;
    this.reset.hidden = !isOperator() || !CAN_REST.includes(arm.condition.kind);
    this.#notes(arm);
    this.side.live(arm);
    this.space.live(arm);
    this.joints.live(arm.joints);
    this.servos.live(arm.servos);
  }

  #notes(arm) {
    const notes = [...(arm.fault ? [`Fault: ${arm.fault}`] : []), ...arm.warnings, ...arm.steps];
    const shown = Array.from(this.notes.children, (item) => item.textContent);
    if (JSON.stringify(shown) === JSON.stringify(notes)) return;
    this.notes.replaceChildren(...notes.map((note) => element("li", {}, note)));
  }
}

// Lists the servos that answer on the bus, how often each was asked again, and the duration of cycles.
function busTable(arm, bus) {
  if (!bus) return [];
  const servos = new LiveTable(`Bus of ${arm}`, ["Servo", "Model and firmware", "Asked again", "Not read", "Jumps"]);
  servos.show(bus.servos.map((one) => {
    const named = bus.identity.find(({ servo }) => servo.startsWith(`servo ${one.id} `));
    const words = named ? `${named.model}, ${named.firmware}` : "not told";
    return [named?.servo || `servo ${one.id}`, words, one.retries, one.blind, one.jumps];
  }));
  const times = `Cycles take ${bus.cycle_ms.p50} ms, 99 of 100 at most ${bus.cycle_ms.p99} ms; ${bus.cycles} so far, ${bus.corrupt} damaged replies.`;
  return [servos.node, element("p", {}, times)];
}

export class ArmPanels {
  #panels = new Map();

  // A sheet may arrive before its arm.
  #sheets = new Map();

  sheet(sheet) {
    this.#sheets.set(sheet.arm, sheet);
    this.#panels.get(sheet.arm)?.showSheet(sheet);
  }

  // What is out of sight is not drawn.
  live(arms, chosen) {
    if (byId("arm").hidden) return;
    for (const arm of arms) this.#panel(arm).live(arm, arm.name === chosen);
  }

  #panel(arm) {
    let panel = this.#panels.get(arm.name);
    if (!panel) {
      panel = new ArmPanel(arm);
      this.#panels.set(arm.name, panel);
      byId("arm-panels").append(panel.node);
      if (this.#sheets.has(arm.name)) panel.showSheet(this.#sheets.get(arm.name));
      panel.open();
    }
    return panel;
  }
}

// Calls `show` when the arm's tab is opened.
export function beginArmPanels(show) {
  addEventListener("tab", ({ detail }) => { if (detail === "arm") show(); });
}
