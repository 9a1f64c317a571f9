// The doctor: causes that keep arms from being used, each with a fix, and the servos that answer on each bus.

import { isOperator, runVerb } from "./commands.js";
import { door } from "./door.js";
import { LiveTable, byId, element, known, say } from "./elements.js";

function servoRow(servo) {
  const reports = servo.error_bits ? { text: servo.error_bits, warns: true } : "nothing";
  return [servo.servo, `${servo.model}, ${servo.firmware}`, servo.identity, known(servo.voltage_v, "V", 1), known(servo.temperature_c, "°C", 0), reports, servo.retries ?? "not counted"];
}

function card(arm) {
  const findings = arm.findings.flatMap((finding) => [element("dt", {}, finding.what), element("dd", {}, finding.fix)]);
  const servos = new LiveTable(`Servos on the bus of ${arm.arm}`, ["Servo", "Model and firmware", "Identity", "Supply", "Temperature", "Reports", "Asked again"]);
  servos.show(arm.servos.map(servoRow));
  const list = findings.length > 0 ? element("dl", {}, ...findings) : element("p", {}, "No findings.");
  return element("article", {}, element("h3", {}, `${arm.arm} at ${arm.port}`), list, servos.node);
}

async function refresh() {
  say(byId("doctor-answer"), "Looking …");
  try {
    const reply = await runVerb({ verb: "doctor" });
    byId("doctor-list").replaceChildren(...reply.data.map(card));
    say(byId("doctor-answer"), reply.text);
  } catch (failure) {
    say(byId("doctor-answer"), `Not read: ${failure.message}`);
  }
}

export function beginDoctor() {
  byId("doctor").addEventListener("toggle", () => { if (byId("doctor").open) refresh(); });
  byId("doctor-look").addEventListener("click", refresh);
  door.addEventListener("session", () => { if (!isOperator()) byId("doctor").open = false; });
}
