// Assembles the page. Nothing here sends a command by itself: loading, reloading and going back only read.

import { answersLive } from "./answers.js";
import { ArmPanels, beginArmPanels } from "./arm_panel.js";
import { beginCalibrations, calibrationsLive } from "./calibrations_panel.js";
import { beginDepthTrim, depthTrimLive } from "./depth_trim.js";
import { watchSession } from "./door.js";
import { beginDoctor } from "./doctor_panel.js";
import { beginDraw, drawLive } from "./draw_panel.js";
import { beginFirstLine } from "./first_line_panel.js";
import { follow, silence } from "./feed.js";
import { happenedLive } from "./happened.js";
import { beginHead, chosenArmOf, headLive, showAge } from "./head.js";
import { beginJobs, jobsLive } from "./jobs_panel.js";
import { beginJog } from "./jog_panel.js";
import { beginNotices, noticesLive } from "./notices.js";
import { beginPaper, paper } from "./paper.js";
import { beginPens, pensLive } from "./pens_panel.js";
import { beginSetup, offerArms } from "./setup_panel.js";
import { beginTabs } from "./tabs.js";

const AGE_LOOK_MS = 100;

const arms = new ArmPanels();
let newest = null;

function show(kind, value) {
  if (kind === "sheet") {
    arms.sheet(value);
    return paper().sheet(value);
  }
  newest = value;
  answersLive(value);
  headLive(value);
  depthTrimLive(chosenArmOf(value));
  paper().live(chosenArmOf(value));
  arms.live(value.arms, chosenArmOf(value).name);
  offerArms(value.arms);
  pensLive(value.pens);
  noticesLive(value);
  jobsLive(value);
  calibrationsLive(value);
  drawLive(value);
  happenedLive(value);
}

beginTabs();
beginHead();
beginDepthTrim();
beginPaper();
beginSetup();
beginArmPanels(() => { if (newest) show("state", newest); });
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
setInterval(() => showAge(silence()), AGE_LOOK_MS);
