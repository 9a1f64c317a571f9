// Plan, progress and stop. Text from others is shown as text and pictures, never as markup.
const SENSE_INTERVAL_MS = 2000;
const CALL_MAX_MS = 10000;
const OLD_MS = 6000;
const PICTURES_MAX = 4;
const RUNNING_STATES = ["accepted", "planning", "moving", "held", "waiting_for_pen"];

const COLOURS = ["good", "busy", "wait", "bad", "quiet"];
// The name of SVG's namespace, put together: the view names no address.
const SVG = ["http:", "", "www.w3.org", "2000", "svg"].join("/");

const byId = (id) => document.getElementById(id);
const names = JSON.parse(byId("tools").textContent);
let capabilities = {};
let offer = null;
let drawing = false;
let isRunning = false;
let isSensing = false;
let lastHeard_ms = null;
let lost = "";
let target = {};
let ended = false;
let answers = 0;
let paintings = 0;

function say(id, words, kind) {
  const node = byId(id);
  if (node.textContent !== words) node.textContent = words;
  node.className = kind || "";
}

function element(tag, words) {
  const node = document.createElement(tag);
  if (words) node.textContent = words;
  return node;
}

const call = (tool, args, limit_ms) => host.request("tools/call", { name: names[tool], arguments: args }, limit_ms);

const messageOf = (result) => String((result.structuredContent || {}).message
  || ((result.content || []).find((block) => block.type === "text") || {}).text || "");

// Painted on a canvas, because not every host lets a view load pictures from data URLs.
async function figure({ mimeType, data }, at, count, caption) {
  const node = element("figure");
  const words = count > 1 ? `${caption}, picture ${at + 1} of ${count}` : caption;
  try {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: mimeType }));
    const canvas = element("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height];
    canvas.getContext("2d").drawImage(picture, 0, 0);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", words);
    node.append(canvas, element("figcaption", words));
  } catch (broken) {
    node.append(element("figcaption", `${words}: it cannot be shown (${broken.message})`));
  }
  return node;
}

async function showPictures(content, caption) {
  const isPicture = ({ type, mimeType, data }) => type === "image" && ["image/png", "image/jpeg"].includes(mimeType) && typeof data === "string";
  const all = (content || []).filter(isPicture).slice(0, PICTURES_MAX);
  if (all.length === 0) return;
  paintings += 1;
  const own = paintings;
  const figures = await Promise.all(all.map((one, at) => figure(one, at, all.length, caption)));
  if (own === paintings) byId("pictures").replaceChildren(...figures);
}

// Shows what the arm is doing, in the node's own words.
function showCondition(condition) {
  if (!condition || typeof condition.words !== "string") return;
  const d = STATE_SHAPES[condition.shape] || STATE_SHAPES.ring;
  const path = document.createElementNS(SVG, "path");
  for (const [name, value] of [["d", d], ["fill", "currentColor"], ["fill-rule", "evenodd"]]) path.setAttribute(name, value);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.append(path);
  byId("shape").replaceChildren(svg);
  byId("head").dataset.colour = COLOURS.includes(condition.colour) ? condition.colour : "quiet";
  if (byId("sentence").textContent !== condition.words) byId("sentence").textContent = condition.words;
}

// Looks at the arm's state alone: an answer that was given stays.
async function look() {
  if (ended || !capabilities.serverTools || !names.sense) return;
  const result = await call("sense", target, CALL_MAX_MS).catch(() => null);
  if (result) showCondition((result.structuredContent || {}).condition);
}

function showJob(job) {
  isRunning = Boolean(job) && RUNNING_STATES.includes(job.state);
  byId("job").hidden = !job;
  if (!job) return;
  const [done, of] = [Number(job.done) || 0, Number(job.of) || 0];
  byId("progress").max = Math.max(1, of);
  byId("progress").value = done;
  byId("job-title").textContent = `${job.id}: ${job.tool}`;
  const left = isRunning && job.eta_s > 0 ? `, ${Math.ceil(job.eta_s)} s left by the plan` : "";
  const waits = job.waits_for || (job.state === "held" ? "waits for a person" : "");
  const why = waits ? `: ${waits}` : "";
  byId("job-words").textContent = `${String(job.state).replaceAll("_", " ")}${why}, ${done} of ${of}${left}`;
}

// Returns the call that draws exactly the shown plan, as the node gave it.
function offerOf(reply) {
  const { draw_call, plan_hash } = reply;
  const fits = draw_call && draw_call.tool === "stroke" && plan_hash && draw_call.arguments && draw_call.arguments.plan === plan_hash;
  return fits ? draw_call.arguments : null;
}

function showOffer() {
  byId("draw").hidden = !offer || !capabilities.serverTools || !names.stroke;
  byId("draw").disabled = drawing;
}

function markHeard() {
  lastHeard_ms = performance.now();
  lost = "";
  age();
}

// Shows the answer to a call of a planner or of this view.
function show(result) {
  const reply = result.structuredContent || {};
  const understood = reply.understood || {};
  answers += 1;
  target = Object.fromEntries(["arm", "node", "scene"].filter((key) => typeof understood[key] === "string").map((key) => [key, understood[key]]));
  markHeard();
  offer = offerOf(reply);
  say("words", messageOf(result), result.isError ? "words bad" : "words");
  const refusals = Array.isArray(reply.refusals) ? reply.refusals : [];
  byId("refusals").replaceChildren(...refusals.map((refusal) => element("li", String(refusal.why || ""))));
  showPictures(result.content, offer ? "The plan; nothing has moved" : "As the node shows it");
  showCondition(reply.condition);
  showJob(reply.job);
  showOffer();
  // A plan that is shown asks for nothing.
  if (offer) showCondition({ words: "Planned: nothing has moved", colour: "quiet", shape: "dots" });
  else if (!reply.condition && !document.hidden) look();
}

// Senses the arm again while a drawing runs, and replaces older text and pictures.
async function sense() {
  if (isSensing || ended || !capabilities.serverTools || !names.sense) return;
  isSensing = true;
  const before = answers;
  try {
    const result = await call("sense", target, CALL_MAX_MS);
    markHeard();
    // An offer stays with its own plan, and an answer that has arrived meanwhile is newer.
    if (!offer && before === answers) {
      say("words", messageOf(result), result.isError ? "words bad" : "words");
      showPictures(result.content, "Seen now");
    }
    showCondition((result.structuredContent || {}).condition);
    if (before === answers) showJob((result.structuredContent || {}).job);
  } catch (failure) {
    lost = failure.message;
    age();
  }
  isSensing = false;
}

function age() {
  if (lastHeard_ms === null) return;
  const old_ms = performance.now() - lastHeard_ms;
  const seconds = (old_ms / 1000).toFixed(0);
  const why = lost ? ` (${lost})` : "";
  if (lost || ((isRunning || drawing) && old_ms > OLD_MS)) say("connection", `NOT CONNECTED: what is shown is ${seconds} s old${why}.`, "bad");
  else say("connection", old_ms < 1000 ? "Heard from the node just now." : `Heard from the node ${seconds} s ago.`);
}

async function draw() {
  if (!offer || drawing) return;
  const args = offer;
  drawing = true;
  offer = null;
  showOffer();
  say("words", `Asked to draw plan ${args.plan} …`, "words");
  try {
    const result = await call("stroke", args);
    drawing = false;
    show(result);
    tellModel(`“Draw this” was pressed in the view, for plan ${args.plan}. Answer: ${messageOf(result)}`);
  } catch (failure) {
    drawing = false;
    // Repeating the same call joins the job under way, so nothing is drawn twice.
    offer = args;
    say("words", `The host did not carry the drawing out: ${failure.message}. Look at the arm.`, "words bad");
  }
  showOffer();
}

function tellModel(text) {
  if (!capabilities.updateModelContext) return;
  host.request("ui/update-model-context", { content: [{ type: "text", text }] }, CALL_MAX_MS).catch(() => {});
}

async function stop() {
  if (!capabilities.serverTools) return;
  const began = performance.now();
  const seconds = () => ((performance.now() - began) / 1000).toFixed(2);
  say("stop-answer", "Stop sent.");
  try {
    const result = await call("stop", {});
    const reply = result.structuredContent || {};
    const verified = !result.isError && reply.success === true && reply.state === "stopped";
    say("stop-answer", `Stop: ${verified ? "standstill verified" : "STANDSTILL NOT VERIFIED"}. ${messageOf(result)}. Answered after ${seconds()} s.`, verified ? "good" : "bad");
    markHeard();
  } catch (failure) {
    say("stop-answer", `Stop WAS NOT CONFIRMED after ${seconds()} s (${failure.message}): look at the arm, cut its power if it moves.`, "bad");
  }
  sense();
}

function follow({ theme }) {
  if (theme === "light" || theme === "dark") document.documentElement.style.colorScheme = theme;
}

function size() {
  const { scrollWidth: width } = document.documentElement;
  host.notify("ui/notifications/size-changed", { width, height: Math.ceil(document.body.getBoundingClientRect().height) });
}

host.on("ping", () => {});
host.on("ui/notifications/tool-input", () => say("words", "The assistant's call is being worked on …", "words"));
host.on("ui/notifications/tool-result", (result) => {
  paintings += 1;
  byId("pictures").replaceChildren();
  show(result);
});
host.on("ui/notifications/tool-cancelled", ({ reason }) => say("words", `The assistant's call was cancelled${reason ? `: ${reason}` : ""}.`, "words bad"));
host.on("ui/notifications/host-context-changed", follow);
host.on("ui/resource-teardown", () => { ended = true; });

byId("stop").addEventListener("click", stop);
byId("draw").addEventListener("click", draw);
byId("look").addEventListener("click", sense);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.repeat) stop();
}, true);
setInterval(() => { if (!document.hidden) age(); }, 500);
setInterval(() => { if (!document.hidden && (isRunning || drawing)) sense(); }, SENSE_INTERVAL_MS);

(async () => {
  const appInfo = { name: "steadyhand", version: "1" };
  const reply = await host.request("ui/initialize", { protocolVersion: "2026-01-26", appInfo, appCapabilities: {} });
  capabilities = reply.hostCapabilities || {};
  follow(reply.hostContext || {});
  const canCallTools = Boolean(capabilities.serverTools);
  for (const id of ["stop", "look"]) byId(id).hidden = !canCallTools;
  byId("manual").hidden = canCallTools;
  say("connection", "Connected to the host; nothing heard from the node yet.");
  showOffer();
  host.notify("ui/notifications/initialized", {});
  new ResizeObserver(size).observe(document.body);
})();
