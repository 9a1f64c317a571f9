// A grid in millimetres over the sheet, from its lower left corner, with numbers.

import { shape } from "./elements.js";

const STEPS_MM = [10, 50, 100];
const LINES_MAX = 40;
const TEXT = 0.02;

export function millimetres(size) {
  const unit = Math.max(...size);
  const step = STEPS_MM.find((mm) => unit / mm <= LINES_MAX) || STEPS_MM.at(-1);
  const group = shape("g", { class: "grid" });
  size.forEach((side, axis) => {
    const across = size[1 - axis];
    for (let mm = step; mm < side; mm += step) {
      group.append(shape("path", { d: axis === 0 ? `M${mm} 0V${across}` : `M0 ${mm}H${across}` }));
      if (mm % (2 * step) === 0) group.append(number(mm, axis, unit * TEXT));
    }
  });
  return group;
}

// The sheet's y goes up, and letters down.
function number(mm, axis, height) {
  const [x, y] = axis === 0 ? [mm, height / 3] : [height / 3, mm];
  const node = shape("text", { "font-size": height, transform: `translate(${x} ${y}) scale(1 -1)` });
  node.textContent = mm;
  return node;
}
