// Follows the node. A browser keeps six connections to a node, and a stop must find one free: so of all tabs one follows the
// stream and tells the others.

const CHANNEL = "steadyhand-feed";
const LOOK_MS = 250;
const SILENT_MS = 1200;

const self = Math.random();
const channel = new BroadcastChannel(CHANNEL);
let source = null;
let heard = -Infinity;
let opened = performance.now();
let tell = () => {};
const sheets = new Map();
let newest = null;

function take(kind, data) {
  heard = performance.now();
  const value = JSON.parse(data);
  if (kind === "sheet") sheets.set(value.arm, data);
  else newest = data;
  tell(kind, value);
}

function pass(kind, data) {
  take(kind, data);
  channel.postMessage({ from: self, kind, data });
}

function open() {
  source = new EventSource("/page/events");
  for (const kind of ["state", "sheet"]) {
    source.addEventListener(kind, (event) => pass(kind, event.data));
  }
  source.addEventListener("error", () => { if (source && source.readyState === EventSource.CLOSED) close(); });
}

function close() {
  if (source) source.close();
  source = null;
}

channel.addEventListener("message", ({ data }) => {
  if (data.kind === "new") {
    // A tab that was just opened gets what it has missed.
    if (!source || !newest) return;
    for (const sheet of sheets.values()) channel.postMessage({ from: self, kind: "sheet", data: sheet });
    channel.postMessage({ from: self, kind: "state", data: newest });
    return;
  }
  // Of two tabs that follow one stops.
  if (source && data.from < self) close();
  if (!source) take(data.kind, data.data);
});

function look() {
  if (document.hidden) return close();
  const now = performance.now();
  const silent = now - Math.max(heard, opened) > (heard < opened ? LOOK_MS : SILENT_MS * (1 + Math.random()));
  if (!source && silent) open();
}

function begin() {
  opened = performance.now();
  heard = -Infinity;
  channel.postMessage({ from: self, kind: "new" });
}

// Seconds since the node was last heard.
export function silence() {
  return (performance.now() - heard) / 1000;
}

export function follow(told) {
  tell = told;
  begin();
  setInterval(look, LOOK_MS);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else begin();
  });
  addEventListener("pagehide", close);
}
