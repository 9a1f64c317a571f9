// Puts the page together. Nothing here sends a command by itself: loading, reloading and going back only look.

import { ArmPanels } from "./arm_panel.js";
import { beginCommands } from "./commands.js";
import { beginCalibrations, calibrationsLive } from "./calibrations_panel.js";
import { watchSession } from "./door.js";
import { beginDoctor } from "./doctor_panel.js";
import { beginDraw } from "./draw_panel.js";
import { byId, say, seconds } from "./elements.js";
import { beginFirstLine } from "./first_line_panel.js";
import { follow, silence } from "./feed.js";
import { beginJobs, jobsLive } from "./jobs_panel.js";
import { beginJog } from "./jog_panel.js";
import { beginNotices, noticesLive } from "./notices.js";
import { beginPens, pensLive } from "./pens_panel.js";
import { beginSetup, offerArms } from "./setup_panel.js";

const AGE_LOOK_MS = 100;
const OLD_S = 0.5;
const LOST_S = 2;

const arms = new ArmPanels();

function told(kind, value) {
  if (kind === "sheet") return arms.sheet(value);
  say(byId("node"), value.node);
  document.title = `${value.node}: ${value.arms.map((arm) => arm.words).join(", ")}`;
  arms.live(value.arms);
  offerArms(value.arms);
  pensLive(value.pens);
  noticesLive(value);
  jobsLive(value);
  calibrationsLive(value);
}

function showAge() {
  const old = silence();
  const lost = old >= LOST_S;
  const words = !Number.isFinite(old) ? "connecting"
    : old >= OLD_S ? `last heard ${seconds(old)} ago` : "live";
  say(byId("connection"), words);
  // Said once, and not with every tenth of a second.
  say(byId("lost"), lost && Number.isFinite(old) ? "NOT CONNECTED: what is shown is old" : "");
  arms.aged(Number.isFinite(old) ? old : 0);
}

beginSetup();
beginCommands();
beginDraw();
beginJobs();
beginPens();
beginJog();
beginFirstLine();
beginCalibrations();
beginDoctor();
beginNotices();
watchSession();
follow(told);
setInterval(showAge, AGE_LOOK_MS);
