// Calibrations that were accepted: what each is of, how it was judged, and how far each touch lies from the fit.

import { command } from "./door.js";
import { byId, element, say, shape } from "./elements.js";

const HIGH = 40;
const WIDE = 6;

function plot(record) {
  const residuals = record.residuals_mm;
  if (residuals.length === 0) return null;
  const most = Math.max(0.001, ...residuals.map(Math.abs));
  const bars = residuals.map((mm, at) => shape("rect", {
    x: at * WIDE, width: WIDE - 2, y: HIGH * (1 - Math.abs(mm) / most), height: HIGH * Math.abs(mm) / most,
  }));
  const words = `Distance of ${residuals.length} touches from the fit, at most ${most.toFixed(2)} mm: ${residuals.map((mm) => mm.toFixed(2)).join(", ")} mm`;
  return element("figure", {},
    shape("svg", { class: "residuals", viewBox: `0 0 ${residuals.length * WIDE} ${HIGH}`, role: "img", "aria-label": words }, ...bars),
    element("figcaption", {}, words));
}

function card(record) {
  const reasons = record.reasons.map((reason) => element("li", {}, reason));
  return element("article", {}, ...[element("p", {}, record.words), reasons.length > 0 ? element("ul", {}, ...reasons) : null, plot(record)].filter(Boolean));
}

async function look() {
  say(byId("calibrations-answer"), "Reading …");
  try {
    const told = await command({ verb: "calibrations" });
    if (!told.done) throw new Error(told.text);
    byId("calibrations-list").replaceChildren(...told.data.map(card));
    say(byId("calibrations-answer"), told.text);
  } catch (failure) {
    say(byId("calibrations-answer"), `Not read: ${failure.message}`);
  }
}

export function beginCalibrations() {
  byId("calibrations").addEventListener("toggle", () => { if (byId("calibrations").open) look(); });
}
