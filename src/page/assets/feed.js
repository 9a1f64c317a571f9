// Follows the node. A browser allows six connections to a node, and one must be free for a stop, so only one of all tabs follows
// the stream and forwards it to the others.

import { isEnabled as wantsNotices } from "./notices.js";

const CHANNEL = "steadyhand-feed";
const CHECK_MS = 250;
const SILENT_MS = 1200;

const self = Math.random();
const channel = new BroadcastChannel(CHANNEL);
let source = null;
let lastHeard = -Infinity;
let opened = performance.now();
let listener = () => {};
const sheets = new Map();
let newest = null;

function receive(kind, data) {
  lastHeard = performance.now();
  const value = JSON.parse(data);
  if (kind === "sheet") sheets.set(value.arm, data);
  else newest = data;
  listener(kind, value);
}

function forward(kind, data) {
  receive(kind, data);
  channel.postMessage({ from: self, kind, data });
}

function open() {
  source = new EventSource("/page/events");
  for (const kind of ["state", "sheet"]) {
    source.addEventListener(kind, (event) => forward(kind, event.data));
  }
  source.addEventListener("error", () => { if (source && source.readyState === EventSource.CLOSED) close(); });
}

function close() {
  if (source) source.close();
  source = null;
}

channel.addEventListener("message", ({ data }) => {
  if (data.kind === "new") {
    // A tab that was just opened gets the current state.
    if (!source || !newest) return;
    for (const sheet of sheets.values()) channel.postMessage({ from: self, kind: "sheet", data: sheet });
    channel.postMessage({ from: self, kind: "state", data: newest });
    return;
  }
  // If two tabs follow, one of them stops.
  if (source && data.from < self) close();
  if (!source) receive(data.kind, data.data);
});

// Out of sight, the page follows only for notices.
function rests() {
  return document.hidden && !wantsNotices();
}

function check() {
  if (rests()) return close();
  const now = performance.now();
  const silent = now - Math.max(lastHeard, opened) > (lastHeard < opened ? CHECK_MS : SILENT_MS * (1 + Math.random()));
  if (!source && silent) open();
}

function begin() {
  opened = performance.now();
  lastHeard = -Infinity;
  channel.postMessage({ from: self, kind: "new" });
}

// Returns the seconds since the last message of the node.
export function silence() {
  return (performance.now() - lastHeard) / 1000;
}

export function follow(onMessage) {
  listener = onMessage;
  begin();
  setInterval(check, CHECK_MS);
  document.addEventListener("visibilitychange", () => {
    if (rests()) close();
    else if (!document.hidden) begin();
  });
  addEventListener("pagehide", close);
}
