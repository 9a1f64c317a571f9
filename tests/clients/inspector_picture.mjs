// Inspector's web page over a real node, for the pictures in docs: how tools read for people, and the view beside a call.
//
// node inspector_picture.mjs STEADYHAND CHROMIUM FOLDER; in a folder with @modelcontextprotocol/inspector and playwright-core

import { spawn } from "node:child_process";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [steadyhand, executablePath, folder] = process.argv.slice(2);
const PORT = "16274";
const ready = `http://127.0.0.1:${PORT}`;
const env = { ...process.env, CLIENT_PORT: PORT, DANGEROUSLY_OMIT_AUTH: "true", MCP_AUTO_OPEN_ENABLED: "false", MCP_INSPECTOR_SECRET_STORE: "memory" };
const inspector = spawn("node", ["node_modules/.bin/mcp-inspector", "--web", "--", steadyhand, "serve"], { env, stdio: "ignore" });
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 940 }, deviceScaleFactor: 0.85 });
  for (let tries = 0; !(await page.goto(ready).catch(() => null)); tries += 1) {
    if (tries > 100) throw new Error("Inspector does not answer");
    await new Promise((later) => setTimeout(later, 200));
  }
  await page.getByText("Disconnected").waitFor();
  await page.getByRole("switch").first().click({ force: true });
  await page.getByText("Connected", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Close monitoring sidebar" }).click();
  await page.getByText("Tools", { exact: true }).first().click();
  await page.getByText("Draw", { exact: true }).first().click();
  await page.getByText("plan and picture, no motion").waitFor();
  await page.screenshot({ path: join(folder, "inspector.png") });
  await page.getByText("Apps", { exact: true }).first().click();
  await page.getByText("Draw", { exact: true }).first().click();
  await page.getByText("dry_run", { exact: true }).first().click();
  await page.getByRole("button", { name: "Open App" }).click();
  const view = page.frameLocator("iframe").frameLocator("iframe");
  await view.getByRole("img", { name: "The plan; nothing has moved" }).waitFor();
  await view.getByRole("button", { name: "Draw this" }).waitFor();
  await page.getByText("Tool progress").waitFor({ state: "hidden" });
  // While it draws: the head and the paper of the operator's page.
  await view.getByRole("button", { name: "Draw this" }).click();
  await view.getByText(/ · [4-9] of 11$/).waitFor({ timeout: 60_000 });
  await page.screenshot({ path: join(folder, "mcp-app.png") });
} finally {
  await browser.close();
  inspector.kill();
}
