// How far each touch of a calibration lies from its fit, as bars and in words.

import { element, shape } from "./elements.js";

const HIGH = 40;
const WIDE = 6;

export function residualPlot(residuals) {
  if (residuals.length === 0) return null;
  const most = Math.max(0.001, ...residuals.map(Math.abs));
  const bars = residuals.map((mm, at) => shape("rect", {
    x: at * WIDE, width: WIDE - 2, y: HIGH * (1 - Math.abs(mm) / most), height: HIGH * Math.abs(mm) / most,
  }));
  const words = `Distance of ${residuals.length} ${residuals.length === 1 ? "touch" : "touches"} from the fit, at most ${most.toFixed(2)} mm: ${residuals.map((mm) => mm.toFixed(2)).join(", ")} mm`;
  return element("figure", {},
    shape("svg", { class: "residuals", viewBox: `0 0 ${residuals.length * WIDE} ${HIGH}`, role: "img", "aria-label": words }, ...bars),
    element("figcaption", {}, words));
}
