// The head and the paper as the page has them, the plan that is asked for, and stop. Text from others is shown as text and pictures, never as markup.
const LOOK_INTERVAL_MS = 1000;
const CALL_MAX_MS = 10000;
const OLD_S = 2.5;
const LOST_S = 6;
const PICTURES_MAX = 4;

const COLOURS = ["good", "busy", "wait", "bad", "quiet"];

const PLANNED = { kind: "planned", colour: "quiet", shape: "dots", sentence: "Planned: nothing has moved" };

const names = JSON.parse(byId("tools").textContent);
let capabilities = {};
let offer = null;
let drawing = false;
let isRunning = false;
let isLooking = false;
let mustLookAgain = false;
let lastHeard_ms = null;
let heardAge_s = 0;
let lost = "";
let lostCondition = { kind: "not_connected", colour: "bad", shape: "slash", sentence: "Not connected to the node", cause: "what is shown is old" };
let condition = null;
let target = {};
let sheetKey = "new";
let ended = false;
let answers = 0;
let paintings = 0;

const paper = new SheetPicture();

function tell(id, words, kind) {
  say(byId(id), words);
  byId(id).className = kind || "";
}

const call = (tool, args, limit_ms) => host.request("tools/call", { name: names[tool], arguments: args }, limit_ms);

const messageOf = (result) => String((result.structuredContent || {}).message
  || ((result.content || []).find((block) => block.type === "text") || {}).text || "");

// Painted on a canvas, because not every host lets a view load pictures from data URLs.
async function figure({ mimeType, data }, at, count, caption) {
  const node = element("figure", {});
  const words = count > 1 ? `${caption}, picture ${at + 1} of ${count}` : caption;
  try {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: mimeType }));
    const canvas = element("canvas", {});
    [canvas.width, canvas.height] = [picture.width, picture.height];
    canvas.getContext("2d").drawImage(picture, 0, 0);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", words);
    node.append(canvas, element("figcaption", {}, words));
  } catch (broken) {
    node.append(element("figcaption", {}, `${words}: it cannot be shown (${broken.message})`));
  }
  return node;
}

async function showPictures(id, content, caption) {
  const isPicture = ({ type, mimeType, data }) => type === "image" && ["image/png", "image/jpeg"].includes(mimeType) && typeof data === "string";
  const all = (content || []).filter(isPicture).slice(0, PICTURES_MAX);
  paintings += 1;
  const own = paintings;
  const figures = await Promise.all(all.map((one, at) => figure(one, at, all.length, caption)));
  if (own !== paintings) return;
  for (const place of ["plan", "pictures"]) byId(place).replaceChildren(...(place === id ? figures : []));
}

// Shows what the arm is doing, in the node's own words, and the step that is asked of a person.
function showState(shown) {
  if (!shown || typeof shown.sentence !== "string") return;
  showCondition({ ...shown, colour: COLOURS.includes(shown.colour) ? shown.colour : "quiet" });
  const isAsked = ["wait", "bad"].includes(shown.colour) && Boolean(shown.next?.label);
  tell("next", isAsked ? `Next: ${shown.next.label} (steadyhand ${shown.next.command})` : "");
}

// Shows the paper and the head as the page does.
function showView({ node, arm, lost: gone, sheet, sheet_key: key }) {
  heardAge_s = (arm.age_ms || 0) / 1000;
  lostCondition = gone;
  condition = arm.condition;
  isRunning = Boolean(arm.job) && !arm.job.is_over;
  say(byId("where"), whereText(node, arm));
  if (sheet) paper.draw(sheet.size_mm, sheet);
  if (key !== sheetKey && !sheet) paper.sheet = null;
  sheetKey = key;
  if (paper.sheet) {
    paper.live(arm);
    paper.describe(paper.words(arm));
  }
  // A plan that is shown is looked at first.
  const isPlanShown = Boolean(offer) && byId("plan").firstChild !== null;
  byId("paper").hidden = !paper.sheet || isPlanShown;
  if (isPlanShown) return;
  byId("plan").replaceChildren();
  showState(condition);
  showProgress(arm.job);
}

// Looks at the head and the paper alone: an answer that was given stays.
async function look() {
  if (ended || !capabilities.serverTools || !names.sense) return;
  mustLookAgain = isLooking;
  if (isLooking) return;
  isLooking = true;
  try {
    const { structuredContent: reply = {} } = await call("sense", { ...target, sheet_key: sheetKey }, CALL_MAX_MS);
    // A node of another version has no such view.
    if (reply.view) showView(reply.view);
    else if (reply.condition && !offer) showState({ ...reply.condition, sentence: reply.condition.words });
    markHeard();
  } catch (failure) {
    lost = failure.message;
    age();
  }
  isLooking = false;
  if (mustLookAgain) look();
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
  const wasLost = byId("paper").classList.contains("lost");
  lastHeard_ms = performance.now();
  lost = "";
  if (wasLost) showState(offer ? PLANNED : condition);
  age();
}

// Shows the answer to a call of a planner or of this view.
function show(result) {
  const reply = result.structuredContent || {};
  const understood = reply.understood || {};
  answers += 1;
  target = Object.fromEntries(["arm", "node", "scene"].filter((key) => typeof understood[key] === "string").map((key) => [key, understood[key]]));
  heardAge_s = 0;
  markHeard();
  offer = offerOf(reply);
  tell("words", messageOf(result), result.isError ? "words bad" : "words");
  const refusals = Array.isArray(reply.refusals) ? reply.refusals : [];
  byId("refusals").replaceChildren(...refusals.map((refusal) => element("li", {}, String(refusal.why || ""))));
  if (offer) showPictures("plan", result.content, "The plan; nothing has moved");
  else showPictures("pictures", result.content, "As the node shows it");
  showOffer();
  // A plan that is shown asks for nothing.
  if (!offer) return look();
  byId("paper").hidden = true;
  showProgress(null);
  showState(PLANNED);
}

// Senses the arm, with what cameras see, and replaces older text and pictures.
async function sense() {
  if (ended || !capabilities.serverTools || !names.sense) return;
  const before = answers;
  try {
    const result = await call("sense", target, CALL_MAX_MS);
    heardAge_s = 0;
    markHeard();
    // An offer stays with its own plan, and an answer that has arrived meanwhile is newer.
    if (!offer && before === answers) {
      tell("words", messageOf(result), result.isError ? "words bad" : "words");
      showPictures("pictures", result.content, "Seen now");
    }
  } catch (failure) {
    lost = failure.message;
    age();
  }
  look();
}

function age() {
  if (lastHeard_ms === null) return;
  const silence_s = (performance.now() - lastHeard_ms) / 1000;
  const isLost = Boolean(lost) || ((isRunning || drawing) && silence_s > LOST_S);
  const words = ageText(silence_s + heardAge_s, OLD_S);
  tell("connection", lost ? `${words} (${lost})` : words, isLost ? "bad" : "");
  byId("paper").classList.toggle("lost", isLost);
  if (isLost) showState(lostCondition);
}

async function draw() {
  if (!offer || drawing) return;
  const args = offer;
  drawing = true;
  offer = null;
  showOffer();
  tell("words", `Asked to draw plan ${args.plan} …`, "words");
  try {
    const result = await call("stroke", args);
    drawing = false;
    show(result);
    tellModel(`“Draw this” was pressed in the view, for plan ${args.plan}. Answer: ${messageOf(result)}`);
  } catch (failure) {
    drawing = false;
    // Repeating the same call joins the job under way, so nothing is drawn twice.
    offer = args;
    tell("words", `The host did not carry the drawing out: ${failure.message}. Look at the arm.`, "words bad");
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
  tell("stop-answer", "Stop sent.");
  try {
    const result = await call("stop", {});
    const reply = result.structuredContent || {};
    const verified = !result.isError && reply.success === true && reply.state === "stopped";
    tell("stop-answer", `Stop: ${verified ? "standstill verified" : "STANDSTILL NOT VERIFIED"}. ${messageOf(result)}. Answered after ${seconds()} s.`, verified ? "good" : "bad");
    markHeard();
  } catch (failure) {
    tell("stop-answer", `Stop WAS NOT CONFIRMED after ${seconds()} s (${failure.message}): look at the arm, cut its power if it moves.`, "bad");
  }
  look();
}

function follow({ theme }) {
  if (theme === "light" || theme === "dark") document.documentElement.style.colorScheme = theme;
}

function size() {
  const { scrollWidth: width } = document.documentElement;
  host.notify("ui/notifications/size-changed", { width, height: Math.ceil(document.body.getBoundingClientRect().height) });
}

host.on("ping", () => {});
host.on("ui/notifications/tool-input", () => tell("words", "The assistant's call is being worked on …", "words"));
host.on("ui/notifications/tool-result", show);
host.on("ui/notifications/tool-cancelled", ({ reason }) => tell("words", `The assistant's call was cancelled${reason ? `: ${reason}` : ""}.`, "words bad"));
host.on("ui/notifications/host-context-changed", follow);
host.on("ui/resource-teardown", () => { ended = true; });

byId("paper").append(element("figure", {}, paper.svg, paper.caption));
byId("stop").addEventListener("click", stop);
byId("draw").addEventListener("click", draw);
byId("look").addEventListener("click", sense);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.repeat) stop();
}, true);
setInterval(() => { if (!document.hidden) age(); }, 500);
setInterval(() => { if (!document.hidden && (isRunning || drawing)) look(); }, LOOK_INTERVAL_MS);

(async () => {
  const appInfo = { name: "steadyhand", version: "1" };
  const reply = await host.request("ui/initialize", { protocolVersion: "2026-01-26", appInfo, appCapabilities: {} });
  capabilities = reply.hostCapabilities || {};
  follow(reply.hostContext || {});
  const canCallTools = Boolean(capabilities.serverTools);
  for (const id of ["stop", "look"]) byId(id).hidden = !canCallTools;
  byId("manual").hidden = canCallTools;
  tell("connection", "Connected to the host; nothing heard from the node yet.");
  showOffer();
  host.notify("ui/notifications/initialized", {});
  new ResizeObserver(size).observe(document.body);
})();
