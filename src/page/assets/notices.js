// Tells a person who looks elsewhere: a job is done, something waits for a person, an arm has a fault. It asks the browser only
// when a button is pressed, and sends nothing to the node.

import { byId, say } from "./elements.js";

const WANTED = "steadyhand-notices";

let known = null;
let permission = globalThis.Notification?.permission;

function isWanted() {
  return permission === "granted" && localStorage.getItem(WANTED) === "yes";
}

function causes(state) {
  const arms = state.arms.flatMap((arm) => [
    arm.fault ? `Fault: ${arm.name}: ${arm.fault}` : null,
    arm.latched ? `Needs you: ${arm.name}: ${arm.latched}` : null,
    arm.job?.is_over ? `Done: ${arm.job.id} on ${arm.name}: ${arm.job.state}` : null,
  ]);
  const pens = state.pens.map((pen) => `Needs you: ${pen.job} waits for ${pen.words}`);
  const plans = state.waiting > 0 ? [`Needs you: plans that wait for a yes or no: ${state.waiting}`] : [];
  return new Set([...arms, ...pens, ...plans].filter(Boolean));
}

export function noticesLive(state) {
  const seen = causes(state);
  // What was so when the page was opened is no news.
  const news = known ? [...seen].filter((cause) => !known.has(cause)) : [];
  known = seen;
  if (!isWanted()) return;
  // Several tabs tell once: a notice of the same tag takes the other's place.
  for (const cause of news) new Notification(state.node, { body: cause, tag: cause });
}

function show() {
  const words = !("Notification" in globalThis) ? "This browser shows no notices to this address."
    : permission === "denied" ? "This browser refuses notices of this page: its settings say so."
      : isWanted() ? "This browser tells you when a job is done, when something waits for you, and of faults."
        : "This browser tells you nothing while you look elsewhere.";
  say(byId("notices-words"), words);
  say(byId("notices-ask"), isWanted() ? "Tell me nothing" : "Tell me");
  byId("notices-ask").hidden = !("Notification" in globalThis);
}

export function beginNotices() {
  byId("notices-ask").addEventListener("click", async () => {
    if (isWanted()) localStorage.removeItem(WANTED);
    else {
      permission = await Notification.requestPermission();
      if (permission === "granted") localStorage.setItem(WANTED, "yes");
    }
    show();
  });
  show();
}
