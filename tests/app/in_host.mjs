// What a person does with the view inside an MCP client, over real nodes with simulated arms.
//
// node in_host.mjs STEADYHAND CHROMIUM HOST_PAGE_JS FOLDER_FOR_PICTURES WORK_FOLDER

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { chromium } from "playwright-core";

const [steadyhand, executablePath, hostPage, folder, work] = process.argv.slice(2);
const VIEW = "ui://steadyhand/drawing";
const VIEWS = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } };
const HOST = { serverTools: {}, updateModelContext: { text: {} } };
const PATIENCE_MS = 60_000;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const nodes = [];
const complaints = [];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });

// A node of its own; answers with the address of its MCP.
async function startNode(name, config) {
  const place = join(work, name);
  mkdirSync(place);
  writeFileSync(join(place, "node.toml"), config);
  const options = ["--config", join(place, "node.toml"), "--state", join(place, "state")];
  const child = spawn(steadyhand, [...options, "serve", "--http", "127.0.0.1:0", "--socket", join(place, "sock")], { stdio: ["ignore", "ignore", "pipe"] });
  nodes.push(child);
  let log = "";
  return new Promise((found, failed) => {
    child.on("exit", (code) => failed(new Error(`the node ended with ${code}: ${log}`)));
    child.stderr.on("data", (more) => {
      log += more;
      const [, url] = log.match(/MCP at (http:\S+\/mcp)/) || [];
      if (url) found(url);
    });
  });
}

async function connect(url, capabilities) {
  const client = new Client({ name: "bench", version: "1" }, { capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

// A host with the view in it; `asked` is what the view had it do.
async function host({ client, capabilities = HOST, context = {}, options = {} }) {
  const { contents: [view] } = await client.readResource({ uri: VIEW });
  const browsing = await browser.newContext({ viewport: { width: 640, height: 900 }, ...options });
  const page = await browsing.newPage();
  const asked = { calls: [], model: [], requests: [] };
  page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => asked.requests.push(request.url()));
  await page.exposeFunction("callTool", (params) => {
    asked.calls.push(params);
    return client.callTool(params, { timeout: 300_000 });
  });
  await page.exposeFunction("modelHears", (params) => { asked.model.push(params); });
  await page.setContent('<!doctype html><html lang="en"><title>host</title><body></body></html>');
  await page.addScriptTag({ path: hostPage });
  await page.evaluate(([html, able, hostContext]) => globalThis.show(html, able, hostContext), [view.text, capabilities, context]);
  const frame = page.frames().find((one) => one !== page.mainFrame());
  const count = (name) => asked.calls.filter((call) => call.name === name).length;
  return { page, frame, asked, count, browsing };
}

// The planner's own call, whose answer the host gives to the view.
async function planner(shown, client, name, args) {
  const result = await client.callTool({ name, arguments: args }, { timeout: 300_000 });
  await tell(shown, args, result);
  return result;
}

async function tell({ page }, args, result) {
  await page.evaluate(async ([input, told]) => {
    await globalThis.bridge.sendToolInput({ arguments: input });
    await globalThis.bridge.sendToolResult(told);
  }, [args, result]);
}

async function accessible(frame, name) {
  await frame.evaluate(axe);
  const result = await frame.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
  const found = result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`);
  assert.deepEqual(found, [], `${name}: axe finds ${found.length} violations`);
  assert.ok(result.passes.length > 8, `${name}: axe looked at ${result.passes.length} rules`);
}

async function until(what, holds) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `not in time: ${what}`);
    await new Promise((later) => setTimeout(later, 100));
  }
}

const state = async (client) => (await client.callTool({ name: "sense", arguments: {} })).structuredContent.state;
const button = (frame, name) => frame.getByRole("button", { name });
const picture = (frame, name) => frame.getByRole("img", { name });
const paperOf = (frame) => frame.getByRole("img", { name: /^The sheet of \d/ });
// Length of all ink on a paper, in millimetres.
const inkLength = (frame) => frame.locator(".sheet .ink").evaluateAll((lines) => lines.filter((line) => line.hasAttribute("d")).reduce((sum, line) => sum + line.getTotalLength(), 0));
const url = await startNode("bench", 'name = "bench"\nlease_idle_s = 1\n');
const client = await connect(url, VIEWS);

const steps = {
  async "only a host that shows views is told of one"() {
    const plain = await connect(url, {});
    const bare = async (asked) => [await asked.listTools(), await asked.listResources()];
    const [[tools, resources], [marked, more]] = [await bare(plain), await bare(client)];
    for (const text of [JSON.stringify(tools), JSON.stringify(resources), JSON.stringify(plain.getServerCapabilities())]) {
      assert.ok(!text.includes("ui://") && !text.includes("resourceUri") && !text.includes("/ui"), text);
    }
    await assert.rejects(plain.readResource({ uri: VIEW }), /there is no resource/);
    assert.deepEqual(client.getServerCapabilities().extensions, { "io.modelcontextprotocol/ui": {} });
    const named = marked.tools.filter((tool) => tool._meta).map((tool) => tool.name);
    assert.deepEqual(named, ["align", "sense", "stroke", "robot_align", "robot_sense", "robot_stroke"]);
    for (const tool of marked.tools) {
      if (tool._meta) assert.deepEqual(tool._meta, { ui: { resourceUri: VIEW }, "ui/resourceUri": VIEW });
      delete tool._meta;
    }
    const without = { ...more, resources: more.resources.filter((one) => one.uri !== VIEW) };
    assert.deepEqual([marked, without], [tools, resources]);
    await plain.close();
  },

  async "a plan is drawn exactly as shown, seen on its way and stopped"() {
    const shown = await host({ client });
    const { frame, asked, count } = shown;
    const { structuredContent: told } = await planner(shown, client, "stroke", { dry_run: true });
    await picture(frame, "The plan; nothing has moved").waitFor();
    await frame.getByText(told.plan_hash).waitFor();
    await accessible(frame, "plan");
    await until("a height", () => shown.page.evaluate(() => globalThis.height > 300));
    assert.deepEqual(asked.calls, [], "a plan that is shown calls no tool");
    await shown.page.screenshot({ path: join(folder, "plan.png") });
    await button(frame, "Draw this").dblclick();
    await frame.getByText(/^\d+ % · .* left · \d+ of 11$/).waitFor({ timeout: PATIENCE_MS });
    assert.deepEqual(asked.calls.filter((call) => call.name === "stroke").map((call) => call.arguments), [told.draw_call.arguments]);
    await frame.getByText(/ · [1-9]\d* of 11$/).waitFor({ timeout: PATIENCE_MS });
    // The paper is live: ink grows, the plan is thin, the pen is where it draws.
    await paperOf(frame).waitFor();
    assert.equal(await frame.locator(".sheet .plan").count(), 11);
    const before_mm = await inkLength(frame);
    await until("more ink", async () => (await inkLength(frame)) > before_mm + 5);
    await frame.locator(".sheet .pen").waitFor();
    assert.equal(await frame.locator("#plan canvas").count(), 0, "the plan's picture made room for the paper");
    await accessible(frame, "progress");
    await shown.page.screenshot({ path: join(folder, "progress.png") });

    // Out of sight it asks for nothing.
    const hidden = (is) => frame.evaluate((value) => Object.defineProperty(document, "hidden", { value, configurable: true }), is);
    await hidden(true);
    await new Promise((under_way) => setTimeout(under_way, 1000));
    const before = count("sense");
    await new Promise((later) => setTimeout(later, 3000));
    assert.equal(count("sense"), before, "a view out of sight asked for more");
    await hidden(false);
    await until("a look", () => count("sense") > before);

    await frame.locator("body").press("Escape");
    await frame.getByText(/^Stop: standstill verified\..* first stop frame after/).waitFor();
    assert.equal(count("stop"), 1);
    await until("the model hears", () => asked.model.length === 1);
    assert.match(asked.model[0].content[0].text, new RegExp(`pressed in the view, for plan ${told.plan_hash}`));
    assert.equal(await state(client), "stopped");
    await frame.getByText("Stopped", { exact: true }).waitFor();
    await paperOf(frame).waitFor();
    await frame.getByText(/^\S.*: \d+ % drawn$/).waitFor();
    await accessible(frame, "stopped");
    await shown.page.screenshot({ path: join(folder, "stopped.png") });

    // At rest nothing is asked for, and a host that takes the view away is answered.
    await new Promise((under_way) => setTimeout(under_way, 1000));
    const rest = count("sense");
    await new Promise((later) => setTimeout(later, 3000));
    assert.equal(count("sense"), rest, "a view of an arm at rest asked for more");
    await shown.page.evaluate(() => globalThis.bridge.teardownResource({}));
    await shown.browsing.close();
    await client.callTool({ name: "reset", arguments: {} });
  },

  async "head and paper say the same words as the operator's page"() {
    const shown = await host({ client });
    const page = await (await browser.newContext({ viewport: { width: 1366, height: 768 } })).newPage();
    await page.goto(new URL("/", url).href);
    const texts = (where) => Promise.all(["#sentence", "#cause", "#paper figcaption", "#where"].map((id) => where.locator(id).textContent()));
    const lines = (where) => where.locator(".sheet path, .sheet rect, .sheet text").evaluateAll((parts) => parts.map((part) => [part.getAttribute("class"), part.getAttribute("d"), part.textContent]));
    const agree = async (what) => until(what, async () => {
      // At rest the view looks only when it is asked to.
      await button(shown.frame, "Look again").click();
      await new Promise((later) => setTimeout(later, 500));
      const both = await Promise.all([shown.frame, page].map((where) => Promise.all([texts(where), lines(where)])));
      return JSON.stringify(both[0]) === JSON.stringify(both[1]);
    });
    const drawn = client.callTool({ name: "stroke", arguments: { again: true } }, { timeout: 300_000 });
    await page.getByText(/% · .* left · [2-9]\d* of/).waitFor({ timeout: PATIENCE_MS });
    await planner(shown, client, "sense", {});
    await until("ink on both", async () => (await inkLength(shown.frame)) > 10 && (await inkLength(page)) > 10);
    assert.equal(await shown.frame.locator("#sentence").textContent(), await page.locator("#sentence").textContent());
    await drawn;
    await agree("after a drawing");
    await client.callTool({ name: "stop", arguments: {} });
    await agree("after a stop");
    await client.callTool({ name: "reset", arguments: {} });
    await agree("at rest");
    await page.context().close();
    await shown.browsing.close();
  },

  async "a drawing goes to its end"() {
    const shown = await host({ client });
    await planner(shown, client, "stroke", { text: "i", size_mm: 12, dry_run: true });
    await button(shown.frame, "Draw this").press("Enter");
    await shown.frame.getByText(/^drew \d+ strokes?,/).waitFor({ timeout: PATIENCE_MS });
    await picture(shown.frame, "As the node shows it, picture 2 of 2").waitFor();
    assert.equal(await button(shown.frame, "Draw this").isVisible(), false, "a plan is drawn once");
    await shown.browsing.close();
  },

  async "it fits a phone and follows the host's light and dark"() {
    const shown = await host({ client, context: { theme: "light" }, options: { viewport: { width: 320, height: 640 } } });
    await planner(shown, client, "stroke", { dry_run: true });
    const { frame, page } = shown;
    const ground = () => frame.evaluate(() => getComputedStyle(document.body).backgroundColor);
    for (const [theme, colour] of [["light", "rgb(255, 255, 255)"], ["dark", "rgb(24, 30, 36)"]]) {
      await page.evaluate((value) => globalThis.bridge.setHostContext({ theme: value }), theme);
      await until(theme, async () => (await ground()) === colour);
      await accessible(frame, theme);
      const [wide, screen] = await frame.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= screen && screen <= 320, `${wide} px wide on ${screen}`);
      const box = await button(frame, "STOP Esc").boundingBox();
      assert.ok(box.height >= 44 && box.width >= 44, `Stop is ${box.width} by ${box.height}`);
      await page.screenshot({ path: join(folder, `phone-${theme}.png`) });
    }
    await shown.browsing.close();
  },

  async "a refusal and a host without tools are said in words"() {
    const shown = await host({ client, capabilities: {} });
    await planner(shown, client, "stroke", { scene: "nowhere", dry_run: true });
    await shown.frame.getByText(/nowhere/).waitFor();
    await shown.frame.getByText(/This host lets the view call no tools/).waitFor();
    await planner(shown, client, "stroke", { scene: "default", dry_run: true });
    await picture(shown.frame, "The plan; nothing has moved").waitFor();
    for (const name of ["Draw this", "STOP Esc", "Look again"]) assert.equal(await button(shown.frame, name).isVisible(), false, name);
    await accessible(shown.frame, "no tools");
    await shown.page.evaluate(() => globalThis.bridge.sendToolCancelled({ reason: "enough" }));
    await shown.frame.getByText("The assistant's call was cancelled: enough.").waitFor();
    assert.deepEqual(shown.asked.calls, []);
    await shown.browsing.close();
  },

  async "a hostile host gets no markup in, nothing out and no more than a tool call"() {
    const shown = await host({ client });
    const { frame, page, asked } = shown;
    const markup = '<img src=x onerror="parent.bad=1"><script>document.title="bad"</script>';
    const forged = { tool: "stroke", arguments: { plan: "0".repeat(32) } };
    const told = (draw_call, plan_hash) => ({ content: [{ type: "text", text: markup }, { type: "image", mimeType: "image/svg+xml", data: "PHN2Zz4=" }, { type: "image", mimeType: "image/png", data: "x\" onerror=\"1" }, { type: "image", mimeType: "image/png", data: "AAAA" }],
      structuredContent: { message: markup, refusals: [{ why: markup }], job: { id: markup, tool: markup, state: "reached", done: "x", of: null }, draw_call, plan_hash } });
    for (const [call, hash] of [[{ ...forged, tool: "reset" }, forged.arguments.plan], [forged, "another"], [{ tool: "stroke" }, undefined]]) {
      await tell(shown, {}, told(call, hash));
      await frame.getByText(markup).first().waitFor();
      assert.equal(await button(frame, "Draw this").isVisible(), false, JSON.stringify(call));
    }
    assert.equal(await frame.locator("img, canvas, script:not([id]) ~ script").count(), 0);
    assert.equal(await frame.title(), "Steadyhand");
    // A plan that nobody made: the node draws nothing.
    await tell(shown, {}, told(forged, forged.arguments.plan));
    await button(frame, "Draw this").click();
    await frame.getByText(/nothing moved$/).first().waitFor({ timeout: PATIENCE_MS });
    assert.notEqual(await state(client), "moving");
    // Messages that are not its host's are not heard.
    await frame.evaluate(() => {
      postMessage({ jsonrpc: "2.0", method: "ui/notifications/tool-cancelled", params: { reason: "forged" } }, "*");
    });
    await page.evaluate(() => globalThis.bridge.sendToolCancelled({ reason: "true" }));
    await frame.getByText("cancelled: true.").waitFor();
    const reached = await frame.evaluate(async (address) => fetch(address, { mode: "no-cors" }).then(() => "reached", () => "refused"), url);
    assert.equal(reached, "refused");
    assert.deepEqual(asked.requests.filter((one) => one.startsWith("http")), []);
    // The forbidden fetch is this step's own.
    complaints.length = 0;
    await shown.browsing.close();
  },

  async "“Draw this” is no person's approval"() {
    const strict = await connect(await startNode("strict", 'name = "strict"\nbefore_drawing = "person"\n'), VIEWS);
    const shown = await host({ client: strict });
    await planner(shown, strict, "stroke", { dry_run: true });
    await button(shown.frame, "Draw this").click();
    await shown.frame.getByText("Waits for your approval", { exact: true }).waitFor({ timeout: PATIENCE_MS });
    await shown.frame.getByText(/^Next: Look at the plan \(steadyhand approve /).waitFor();
    await shown.frame.getByText(/planned, waits for your yes$/).waitFor();
    assert.notEqual(await state(strict), "moving");
    await button(shown.frame, "STOP Esc").click();
    await shown.frame.getByText(/^Stop: standstill verified/).waitFor();
    assert.notEqual(await state(strict), "moving");
    await shown.browsing.close();
    await strict.close();
  },

  async "a node that is gone is said to be"() {
    const brief = await connect(await startNode("brief", 'name = "brief"\n'), VIEWS);
    const shown = await host({ client: brief });
    await planner(shown, brief, "sense", {});
    nodes.at(-1).kill("SIGKILL");
    await button(shown.frame, "Look again").click();
    await shown.frame.getByText("Not connected to the node", { exact: true }).waitFor({ timeout: PATIENCE_MS });
    await shown.frame.getByText(/^last heard .* ago/).waitFor();
    await button(shown.frame, "STOP Esc").click();
    await shown.frame.getByText(/Stop WAS NOT CONFIRMED/).waitFor({ timeout: PATIENCE_MS });
    await shown.browsing.close();
  },
};

let failed = 0;
for (const [name, step] of Object.entries(steps)) {
  if (process.env.APP_STEP && !name.includes(process.env.APP_STEP)) continue;
  const began = performance.now();
  try {
    await step();
    console.log(`ok: ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (failure) {
    failed += 1;
    console.log(`FAILED: ${name}: ${failure.stack}`);
    for (const context of browser.contexts()) {
      for (const page of context.pages()) await page.screenshot({ path: join(folder, `failed-${failed}.png`) }).catch(() => {});
      await context.close();
    }
  }
}
await browser.close();
for (const node of nodes) {
  node.removeAllListeners("exit");
  node.kill("SIGKILL");
}
if (complaints.length > 0) {
  failed += 1;
  console.log(`FAILED: the console has errors:\n${[...new Set(complaints)].join("\n")}`);
}
process.exit(failed === 0 ? 0 : 1);
