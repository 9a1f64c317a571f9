// One arm: its activity, who may move it, its sheet, joints and servos, and an operator's commands for it.

import { isOperator, tryVerb, verbButton } from "./commands.js";
import { door, sense, session } from "./door.js";
import { resume } from "./draw_panel.js";
import { LiveTable, byId, element, known, milliseconds, say, seconds, set } from "./elements.js";
import { SheetView } from "./sheet_view.js";
import { SideView } from "./side_view.js";
import { SpaceView } from "./space_view.js";

// Warns of a joint this close to its limit, and of a servo this hot.
const NEAR_LIMIT_DEG = 5;
const HOT_C = 60;
const OLD_S = 0.5;
const SENSE_INTERVAL_MS = 5000;
const POLL_MS = 100;

export class ArmPanel {
  constructor(arm) {
    this.name = arm.name;
    const title = `arm-${arm.name}`;
    this.title = element("h2", { id: title });
    this.state = element("p", { class: "state", role: "status" });
    this.age = element("p", { class: "age" });
    this.notes = element("ul", { class: "notes" });
    this.job = element("p", { class: "words" });
    this.progress = element("progress", { max: 1, value: 0, "aria-label": `Progress of ${arm.name}` });
    this.stop = element("p");
    this.answer = element("p", { role: "status" });
    this.senseButton = element("button", { type: "button", onclick: () => this.#sense() }, `Look closer at ${arm.name}: cameras and bus`);
    this.repeats = element("input", { type: "checkbox", onchange: () => this.#senseRepeatedly() });
    this.repeatLabel = element("label", { class: "check" }, this.repeats, `and again every ${SENSE_INTERVAL_MS / 1000} s`);
    this.sensed = element("div");
    this.reset = verbButton(`Reset ${arm.name}: to rest`, { verb: "reset", scene: null, arm: arm.name }, this.answer);
    this.trim = element("button", { type: "button", hidden: true, onclick: () => this.#trim() }, `End here and park ${arm.name}, to trim what is left …`);
    this.sheet = new SheetView(arm);
    this.side = new SideView(arm);
    this.space = new SpaceView(arm);
    this.joints = new LiveTable(`Joints of ${arm.name}`, ["Joint", "Angle", "Limits", "Speed"]);
    this.servos = new LiveTable(`Servos of ${arm.name}`, ["Servo", "Temperature", "Voltage", "Load", "Torque"]);
    this.node = element("article", { "aria-labelledby": title },
      this.title, this.state, this.age, this.notes, this.job, this.progress, this.trim, this.reset, this.answer, this.stop,
      element("div", { class: "views" }, this.sheet.node, this.side.node), this.space.node,
      element("div", { class: "views" }, this.joints.node, this.servos.node), this.senseButton, this.repeatLabel, this.sensed);
    door.addEventListener("session", () => this.#showControls());
    this.#showControls();
  }

  #showControls() {
    this.reset.hidden = !isOperator();
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

  // A held plan cannot change, so it is ended, the arm is brought to rest, and the remainder is planned and checked anew.
  async #trim() {
    const { id, scene } = this.arm.job;
    this.trim.disabled = true;
    try {
      if (!await tryVerb({ verb: "stop" }, this.answer)) return;
      while (!this.arm.job.is_over) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      if (!await tryVerb({ verb: "reset", scene: null, arm: this.name }, this.answer)) return;
      resume({ id, scene, arm: this.name });
    } finally {
      this.trim.disabled = false;
    }
  }

  showSheet(sheet) {
    this.sheet.show(sheet);
    this.side.show(sheet);
    this.space.show(sheet);
  }

  live(arm) {
    this.arm = arm;
    say(this.title, `${arm.name}: ${arm.title}`);
    say(this.state, `It ${arm.words}. Enabled: ${arm.enabled}.${arm.holder ? ` ${arm.holder} has it.` : ""}`);
    this.#notes(arm);
    this.#job(arm.job);
    say(this.stop, stopWords(arm.stop));
    this.sheet.live(arm);
    this.side.live(arm);
    this.space.live(arm);
    this.joints.show(arm.joints.map(jointRow));
    this.servos.show(arm.servos.map(servoRow));
  }

  // Shows the age of the reading; `silence` is the time since the last message of the node.
  showAge(silence) {
    const age_s = (this.arm?.age_ms ?? Infinity) / 1000 + silence;
    const text = age_s < OLD_S ? "" : Number.isFinite(age_s) ? `Last read ${seconds(age_s)} ago.` : "Not read yet.";
    say(this.age, text);
    set(this.node, "class", age_s < 2 ? "arm" : "arm old");
  }

  #notes(arm) {
    const notes = [
      ...(arm.fault ? [`Fault: ${arm.fault}`] : []),
      ...(arm.latched ? [`Latched: ${arm.latched}`] : []),
      ...arm.warnings,
      ...arm.steps,
    ];
    const shown = Array.from(this.notes.children, (item) => item.textContent);
    if (JSON.stringify(shown) === JSON.stringify(notes)) return;
    this.notes.replaceChildren(...notes.map((note) => element("li", {}, note)));
  }

  #job(job) {
    this.trim.hidden = !isOperator() || job?.state !== "held" || job.tool !== "stroke";
    this.progress.hidden = !job || job.is_over;
    if (!job) return say(this.job, "No job since this node started.");
    const left = job.is_over || job.eta_s <= 0 ? "" : `, ${seconds(job.eta_s)} left`;
    const counted = job.of > 0 ? `, ${job.done} of ${job.of}` : "";
    say(this.job, `${job.id} (${job.tool}, ${job.scene}): ${job.state.replaceAll("_", " ")}${counted}${left}. ${job.is_over ? job.words : ""}`);
    set(this.progress, "value", job.total_s > 0 ? (job.done_s / job.total_s).toFixed(3) : 0);
  }
}

function jointRow(joint) {
  const margin_deg = Math.min(joint.angle_deg - joint.lower_deg, joint.upper_deg - joint.angle_deg);
  const isNear = margin_deg < NEAR_LIMIT_DEG;
  return [
    joint.name,
    { text: `${joint.angle_deg.toFixed(1)}°${isNear ? " near its limit" : ""}`, warns: isNear },
    `${joint.lower_deg.toFixed(0)}° to ${joint.upper_deg.toFixed(0)}°`,
    `${joint.speed_deg_s.toFixed(1)}°/s`,
  ];
}

function servoRow(servo) {
  const isHot = servo.temperature_c !== null && servo.temperature_c >= HOT_C;
  const load = servo.load_ratio === null ? null : servo.load_ratio * 100;
  const torque = { true: "on", false: "off", null: "not read" };
  return [
    `${servo.id}${servo.error_bits ? ` (error bits ${servo.error_bits})` : ""}`,
    { text: `${known(servo.temperature_c, "°C", 0)}${isHot ? " hot" : ""}`, warns: isHot },
    known(servo.voltage_v, "V", 1),
    known(load, "%", 0),
    torque[String(servo.torque_on)],
  ];
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

function stopWords(stop) {
  if (!stop) return "";
  const kind = stop.emergency ? "emergency stop" : "stop";
  const idle = stop.was_held ? "a held motion was ended" : "the arm was not moving";
  const first = stop.was_held || stop.first_frame_ms === null ? idle : `first frame after ${milliseconds(stop.first_frame_ms)}`;
  const still = stop.standstill_ms === null ? "" : `, standing after ${milliseconds(stop.standstill_ms)}`;
  return `Last ${kind}: ${first}${still}, standstill ${stop.verified ? "verified" : "NOT verified"}.`;
}

export class ArmPanels {
  #panels = new Map();

  // A sheet may arrive before its arm.
  #sheets = new Map();

  sheet(sheet) {
    this.#sheets.set(sheet.arm, sheet);
    this.#panels.get(sheet.arm)?.showSheet(sheet);
  }

  live(arms) {
    for (const arm of arms) this.#panel(arm).live(arm);
  }

  showAge(silence) {
    for (const panel of this.#panels.values()) panel.showAge(silence);
  }

  #panel(arm) {
    let panel = this.#panels.get(arm.name);
    if (!panel) {
      panel = new ArmPanel(arm);
      this.#panels.set(arm.name, panel);
      byId("arms").append(panel.node);
      if (this.#sheets.has(arm.name)) panel.showSheet(this.#sheets.get(arm.name));
    }
    return panel;
  }
}
