// Puts the page together. Nothing here sends a command by itself: loading, reloading and going back only look.

import { ArmPanels } from "./arm_panel.js";
import { watchSession } from "./door.js";
import { beginDraw } from "./draw_panel.js";
import { byId, say, seconds, set } from "./elements.js";
import { follow, silence } from "./feed.js";
import { beginJobs, jobsLive } from "./jobs_panel.js";
import { beginSetup } from "./setup_panel.js";

const AGE_LOOK_MS = 100;
const OLD_S = 0.5;
const LOST_S = 2;

const arms = new ArmPanels();

function told(kind, value) {
  if (kind === "sheet") return arms.sheet(value);
  say(byId("node"), value.node);
  document.title = `${value.node}: ${value.arms.map((arm) => arm.words).join(", ")}`;
  arms.live(value.arms);
  jobsLive(value);
}

function showAge() {
  const old = silence();
  const lost = old >= LOST_S;
  const words = !Number.isFinite(old) ? "connecting"
    : lost ? `NOT CONNECTED: what is shown is ${seconds(old)} old`
      : old >= OLD_S ? `last heard ${seconds(old)} ago` : "live";
  say(byId("connection"), words);
  set(byId("connection"), "class", lost ? "connection lost" : "connection");
  arms.aged(Number.isFinite(old) ? old : 0);
}

beginSetup();
beginDraw();
beginJobs();
watchSession();
follow(told);
setInterval(showAge, AGE_LOOK_MS);
