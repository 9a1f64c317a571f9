// Assembles the page. Nothing here sends a command by itself: loading, reloading and going back only read.

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

function show(kind, value) {
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
  const age_s = silence();
  const isLost = age_s >= LOST_S;
  const text = !Number.isFinite(age_s) ? "connecting"
    : age_s >= OLD_S ? `last heard ${seconds(age_s)} ago` : "live";
  say(byId("connection"), text);
  // An alert is announced once, not with every update.
  say(byId("lost"), isLost && Number.isFinite(age_s) ? "NOT CONNECTED: what is shown is old" : "");
  arms.showAge(Number.isFinite(age_s) ? age_s : 0);
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
follow(show);
setInterval(showAge, AGE_LOOK_MS);
