// The distance of each touch of a calibration from its fit, as bars and as text.

import { element, shape } from "./elements.js";

const HEIGHT = 40;
const BAR_WIDTH = 6;

export function residualPlot(residuals) {
  if (residuals.length === 0) return null;
  const max_mm = Math.max(0.001, ...residuals.map(Math.abs));
  const bars = residuals.map((mm, at) => shape("rect", {
    x: at * BAR_WIDTH, width: BAR_WIDTH - 2, y: HEIGHT * (1 - Math.abs(mm) / max_mm), height: HEIGHT * Math.abs(mm) / max_mm,
  }));
  const words = `Distance of ${residuals.length} ${residuals.length === 1 ? "touch" : "touches"} from the fit, at most ${max_mm.toFixed(2)} mm: ${residuals.map((mm) => mm.toFixed(2)).join(", ")} mm`;
  return element("figure", {},
    shape("svg", { class: "residuals", viewBox: `0 0 ${residuals.length * BAR_WIDTH} ${HEIGHT}`, role: "img", "aria-label": words }, ...bars),
    element("figcaption", {}, words));
}
