// Notifies a person who is not looking at the page when a job is done, something waits for a person, or an arm has a fault. It asks
// the browser only when a button is pressed, and sends nothing to the node.

import { byId, say } from "./elements.js";

const ENABLED_KEY = "steadyhand-notices";

let previous = null;
let permission = globalThis.Notification?.permission;

// Returns whether a person wants notices while the page is out of sight.
export function isEnabled() {
  return permission === "granted" && localStorage.getItem(ENABLED_KEY) === "yes";
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
  const current = causes(state);
  // Causes that existed when the page was opened are not notified.
  const added = previous ? [...current].filter((cause) => !previous.has(cause)) : [];
  previous = current;
  if (!isEnabled()) return;
  // Several tabs show one notice, because a notice replaces another one with the same tag.
  for (const cause of added) new Notification(state.node, { body: cause, tag: cause });
}

function show() {
  const words = !("Notification" in globalThis) ? "This browser shows no notices to this address."
    : permission === "denied" ? "This browser refuses notices of this page: its settings say so."
      : isEnabled() ? "This browser tells you when a job is done, when something waits for you, and of faults."
        : "This browser tells you nothing while you look elsewhere.";
  say(byId("notices-words"), words);
  say(byId("notices-ask"), isEnabled() ? "Tell me nothing" : "Tell me");
  byId("notices-ask").hidden = !("Notification" in globalThis);
}

export function beginNotices() {
  byId("notices-ask").addEventListener("click", async () => {
    if (isEnabled()) localStorage.removeItem(ENABLED_KEY);
    else {
      permission = await Notification.requestPermission();
      if (permission === "granted") localStorage.setItem(ENABLED_KEY, "yes");
    }
    show();
  });
  show();
}
