// The trim of the pen's depth while it draws: a slider, which arrow keys move as well. Its range is what the scene allows.

import { isOperator, tryVerb } from "./commands.js";
import { byId, say, set } from "./elements.js";

let isChanging = false;
let armName = null;

function words({ target_mm, now_mm }) {
  const where = Math.abs(target_mm) < 5e-4 ? "as planned" : `${Math.abs(target_mm).toFixed(2)} mm ${target_mm > 0 ? "deeper" : "higher"}`;
  return Math.abs(target_mm - now_mm) < 0.005 ? where : `${where}, on its way`;
}

// Shows the trim of an arm; nothing where its scene allows none or the person may not command.
export function depthTrimLive(arm) {
  const trim = isOperator() ? arm.depth_trim : null;
  byId("depth-trim").hidden = !trim;
  armName = arm.name;
  if (!trim) return;
  const slider = byId("depth-trim-mm");
  set(slider, "min", -trim.most_mm);
  set(slider, "max", trim.most_mm);
  say(byId("depth-trim-words"), words(trim));
  if (!isChanging) slider.value = trim.target_mm;
}

// A change is sent when the slider is let go, and with each press of a key.
export function beginDepthTrim() {
  const slider = byId("depth-trim-mm");
  slider.addEventListener("input", () => { isChanging = true; });
  slider.addEventListener("change", async () => {
    await tryVerb({ verb: "trim", to_mm: Number(slider.value), arm: armName }, byId("next-answer"));
    isChanging = false;
  });
}
