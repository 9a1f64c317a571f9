// Small lines of a servo's readings over the last ten minutes, with the limit.

import { shape } from "./elements.js";

const WIDTH = 120;
const HEIGHT = 26;
const SPAN_MS = 600_000;

// Draws values over time, with a line at `limit`; what was not read is left out.
export function sparkline(samples, value, { low, high, limit, label }) {
  const now = samples.at(-1)?.time_ms ?? 0;
  const x = (time_ms) => WIDTH * (1 - (now - time_ms) / SPAN_MS);
  const y = (at) => HEIGHT - 2 - (HEIGHT - 4) * Math.max(0, Math.min(1, (at - low) / (high - low)));
  const points = samples.map((sample) => [sample.time_ms, value(sample)]).filter(([, at]) => at !== null && at !== undefined);
  const drawn = points.map(([time_ms, at]) => `${x(time_ms).toFixed(1)},${y(at).toFixed(1)}`).join(" ");
  const last = points.at(-1);
  return shape("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, preserveAspectRatio: "none" },
    ...(limit === null ? [] : [shape("line", { class: "limit", x1: 0, x2: WIDTH, y1: y(limit), y2: y(limit) })]),
    shape("polyline", { class: "trace", points: drawn }),
    ...(last ? [shape("circle", { class: "now", r: 2, cx: Math.min(WIDTH - 2, x(last[0])), cy: y(last[1]) })] : []));
}
