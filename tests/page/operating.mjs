// Steps of an operator's work on the page: pens changed, drawings placed by hand, trimmed, repeated and replayed, the arm jogged.

import assert from "node:assert/strict";
import { join } from "node:path";

export function operatingSteps({ browser, open, logIn, accessible, shot, folder }) {
  async function opened(name, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1100, height: 1000 }, ...options });
    const page = await open(context, name);
    await logIn(page);
    return page;
  }

  // As the page's own scripts send it; the browser adds what the door asks for.
  function command(page, verb) {
    return page.evaluate(async (said) => (await import("/page/door.js")).command(said), verb);
  }

  async function atRest(page) {
    await command(page, { verb: "stop" });
    await page.waitForFunction(async () => (await (await fetch("/page/state")).json()).arms.every(({ job }) => !job || job.is_over));
    const told = await command(page, { verb: "reset", scene: null });
    assert.ok(told.done, told.text);
  }

  async function previewWords(page, words, size) {
    await page.getByLabel("or words").fill(words);
    await page.getByLabel("Longer side, mm").fill(String(size));
    await page.getByRole("button", { name: "Preview", exact: true }).click();
  }

  const drawThis = (page) => page.getByRole("button", { name: /^Draw this/ });

  return {
    async "an operator puts a drawing in its place by hand and by keyboard"() {
      const page = await opened("placing");
      await previewWords(page, "Hi", 30);
      await drawThis(page).waitFor();
      const sheet = page.locator("svg.placing");
      const x = async () => Number(await page.getByLabel("Left edge, mm").inputValue());
      await sheet.focus();
      await page.keyboard.press("ArrowRight");
      const begun = await x();
      for (const key of ["ArrowRight", "Shift+ArrowRight", "ArrowUp"]) await page.keyboard.press(key);
      assert.ok(Math.abs(await x() - begun - 11) < 0.11, `${await x()} mm after ${begun}`);
      await drawThis(page).waitFor();
      await page.keyboard.press("+");
      assert.equal(Number(await page.getByLabel("Longer side, mm").inputValue()), 31.5);
      await page.keyboard.press(",");
      assert.equal(Number(await page.getByLabel("Turn, degrees").inputValue()), 5);
      await drawThis(page).waitFor();
      await accessible(page, "placing");
      // The focus stays where the hand is, though the sheet was drawn anew.
      assert.ok(await sheet.evaluate((node) => node === document.activeElement), "the sheet has lost the focus");
      const before = await x();
      await sheet.scrollIntoViewIfNeeded();
      const box = await page.locator(".page-outline").boundingBox();
      const middle = [box.x + box.width / 2, box.y + box.height / 2];
      await page.mouse.move(...middle);
      await page.mouse.down();
      await page.mouse.move(middle[0] - 20, middle[1], { steps: 4 });
      await page.mouse.up();
      assert.ok(await x() < before - 1, `${await x()} mm after ${before}`);
      await drawThis(page).waitFor();
      const corner = await page.locator("circle.handle").first().boundingBox();
      await page.mouse.move(corner.x + corner.width / 2, corner.y + corner.height / 2);
      await page.mouse.down();
      await page.mouse.move(corner.x + 220, corner.y + 110, { steps: 4 });
      await page.mouse.up();
      await page.locator("#offer .notes li").getByText(/the sheet/).waitFor();
      assert.ok(await page.locator(".placing .refused").count() > 0, "nothing is marked as refused");
      assert.ok(await page.locator(".placing .marks:not(.stale) path").count() > 0, "no place is marked");
      assert.equal(await drawThis(page).count(), 0, "what is refused can be drawn");
      await accessible(page, "refused");
      await page.locator("#offer").scrollIntoViewIfNeeded();
      await page.screenshot({ path: join(folder, "placing.png") });
      await page.context().close();
    },

    async "what is left of a held drawing is trimmed, planned and judged anew"() {
      const page = await opened("trimming");
      await previewWords(page, "Hello", 40);
      await drawThis(page).click();
      await page.getByText(/moving, [1-4] of \d+/).waitFor();
      await page.getByRole("button", { name: "Hold now" }).click();
      await page.getByText(/held, pen up/).waitFor();
      await page.getByRole("button", { name: /^End here and park/ }).click();
      await page.getByText(/^What is left of job-/).waitFor({ timeout: 60_000 });
      await drawThis(page).waitFor({ timeout: 60_000 });
      const time = async () => page.locator("#offer dt:text-is('Takes') + dd").textContent();
      const untrimmed = await time();
      for (const [raise, words] of [["1.5", /raise_mm is 1.5/], ["0.3", null]]) {
        await page.getByLabel("Raise the pen by, mm").fill(raise);
        await page.getByLabel("Drawing speed, %").fill("50");
        await drawThis(page).waitFor({ state: "hidden" });
        await page.getByRole("button", { name: "Preview", exact: true }).click();
        if (words) await page.getByText(words).waitFor();
      }
      await drawThis(page).waitFor();
      assert.notEqual(await time(), untrimmed, "half the speed takes as long");
      await drawThis(page).click();
      await page.getByText(/moving, \d+ of \d+/).waitFor();
      await page.keyboard.press("Escape");
      await page.getByText(/^Stop: standstill verified/).waitFor();
      await page.getByRole("button", { name: "Look again" }).click();
      await page.locator("#jobs summary").first().click();
      const understood = await page.locator("#jobs details[open] dt:text-is('Understood') + dd").textContent();
      assert.match(understood, /"raise_mm":0.3/);
      assert.match(understood, /"speed_percent":50/);
      // The yes is in the audit log, under the name of who gave it.
      await page.locator("#jobs details[open] .audit dd").getByText(/\(page\): Draw .*speed_percent/).first().waitFor();
      await atRest(page);
      await page.context().close();
    },

    async "an earlier drawing is shown again and replayed on a simulated arm"() {
      const page = await opened("again");
      await previewWords(page, "I", 12);
      await drawThis(page).click();
      await page.getByText(/“I” in default\): reached, /).waitFor({ timeout: 60_000 });
      await page.getByRole("button", { name: "Look again" }).click();
      await page.locator("#jobs summary").first().click();
      await page.getByRole("button", { name: /^Replay job-/ }).first().click();
      await page.getByText(/: the same plan [0-9a-f]+; on the simulator/).waitFor({ timeout: 60_000 });
      await page.getByAltText(/on the simulated arm$/).waitFor();
      await page.getByRole("button", { name: /^Draw job-\d+ again/ }).first().click();
      await page.getByText(/again, from its beginning/).waitFor();
      await drawThis(page).waitFor();
      const job = await page.locator("article.arm").first().textContent();
      assert.match(job, /: reached, /, "showing it again has begun it");
      await page.getByRole("button", { name: "Draw something else" }).click();
      await accessible(page, "again");
      await page.context().close();
    },

    async "one yes in two tabs, each pressed twice, begins one drawing"() {
      const one = await opened("first tab");
      const other = await open(one.context(), "second tab");
      for (const page of [one, other]) {
        await previewWords(page, "V", 12);
        await drawThis(page).waitFor();
      }
      const count = () => one.evaluate(async () => (await (await import("/page/door.js")).read("/page/jobs")).length);
      const before = await count();
      await Promise.all([one, other].map((page) => drawThis(page).dblclick()));
      await one.getByText(/“V” in default\): reached, /).waitFor({ timeout: 60_000 });
      assert.equal(await count(), before + 1);
      await one.context().close();
    },

    async "a person changes the pens of a drawing"() {
      const page = await opened("pens");
      const stranger = await open(await browser.newContext(), "pens, logged out");
      const drawing = command(page, { verb: "first_ink", scene: "pens_by_hand" });
      const first = page.getByRole("button", { name: "Pen 1 black is in: go on" });
      await first.waitFor({ timeout: 60_000 });
      await page.getByText(/waits for pen 1 `black` \(#1a1a2e\)/).first().waitFor();
      await page.getByRole("img", { name: "Colour #1a1a2e" }).waitFor();
      await stranger.getByText("A pen is to be changed").waitFor();
      assert.equal(await stranger.getByRole("button", { name: /is in: go on/ }).count(), 0, "nobody has logged in there");
      await accessible(page, "pen change");
      await shot(page, "pen-change");
      await first.dblclick();
      for (const pen of ["2 red", "3 green"]) {
        const button = page.getByRole("button", { name: `Pen ${pen} is in: go on` });
        await button.waitFor({ timeout: 120_000 });
        await button.click();
      }
      const drawn = await drawing;
      assert.ok(drawn.done, drawn.text);
      await page.getByText("A pen is to be changed").waitFor({ state: "hidden" });
      await atRest(page);
      await stranger.context().close();
      await page.context().close();
    },

    async "an operator jogs the arm, sees it in space and reads its calibrations"() {
      const page = await opened("setting up");
      await page.getByText("First line", { exact: true }).click();
      await page.getByRole("button", { name: "Visit the sheet" }).click();
      await page.locator("#first-steps").getByText(/points visited/).waitFor({ timeout: 120_000 });
      await page.getByText("Jog", { exact: true }).click();
      const place = page.locator("#jog-place");
      await place.getByText(/Tip at/).waitFor();
      const before = await place.textContent();
      await page.getByRole("button", { name: "z plus" }).click();
      await page.waitForFunction((old) => document.getElementById("jog-place").textContent !== old, before);
      await page.getByRole("region", { name: "Joints that can be jogged" }).waitFor();
      await page.getByText("Calibrations", { exact: true }).click();
      await page.getByText("1 calibration", { exact: true }).waitFor();
      await page.locator("#calibrations-list").getByRole("img", { name: /^Distance of 18 touches from the fit, at most \d/ }).waitFor();
      assert.equal(await page.locator("#calibrations-list svg.residuals rect").count(), 18);
      await page.getByText(/ in space$/).first().click();
      const picture = () => page.locator("details.space canvas").evaluate((canvas) => canvas.toDataURL());
      const blank = await page.evaluate(() => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [640, 420];
        return canvas.toDataURL();
      });
      await page.waitForFunction((empty) => document.querySelector("details.space canvas").toDataURL() !== empty, blank);
      const seen = await picture();
      await page.locator("details.space canvas").focus();
      await page.keyboard.press("ArrowRight");
      assert.notEqual(await picture(), seen, "it was not turned");
      await page.getByRole("checkbox", { name: /again every 5 s/ }).check();
      await page.getByRole("region", { name: /^Bus of/ }).waitFor();
      await accessible(page, "setting up");
      await page.locator("details.space").scrollIntoViewIfNeeded();
      await page.screenshot({ path: join(folder, "space.png") });
      await atRest(page);
      await page.context().close();
    },

    async "an operator accepts what the arm has felt and where a camera stands, as they were shown"() {
      const page = await opened("accepting");
      const panel = page.locator("#calibrations");
      const calibrations = async () => (await command(page, { verb: "calibrations" })).data;
      const before = (await calibrations()).length;
      await page.getByText("Calibrations", { exact: true }).click();
      await panel.getByRole("heading", { name: /^Proposed: sheet of felt, (good|usable)/ }).waitFor();
      await page.screenshot({ path: join(folder, "proposal.png"), fullPage: true });
      await accessible(page, "a proposal");
      await panel.getByRole("button", { name: "Accept: write it into the file" }).dblclick();
      await panel.getByText(/^accepted as calibration \d+/).waitFor();
      await panel.getByText("Nothing is proposed.").waitFor();
      assert.equal((await calibrations()).length, before + 1, "a double click accepts once");
      await panel.getByLabel("Scene").selectOption("tagged");
      await panel.getByRole("button", { name: "Find the camera by the scene's tags" }).click();
      await panel.getByRole("heading", { name: /^Proposed: camera of tagged, (good|usable)/ }).waitFor({ timeout: 60_000 });
      await panel.getByRole("button", { name: "Accept: write it into the file" }).click();
      await panel.getByText(/^accepted as calibration \d+/).waitFor();
      const jogged = await command(page, { verb: "jog", scene: "tagged", step: { axis: "z", by: 1 } });
      assert.ok(jogged.done, jogged.text);
      await page.getByRole("button", { name: /^Look closer/ }).click();
      const seen = page.locator("article.arm .words");
      await seen.getByText(/4 tags/).first().waitFor();
      const pictures = page.getByAltText(/of a camera with the sheet that was found/);
      await pictures.first().waitFor();
      await page.locator("article.arm img").last().screenshot({ path: join(folder, "camera.png") });
      await atRest(page);
      await page.context().close();
    },

    async "an operator calibrates: a touch by hand, a proposal that changed meanwhile, and the doctor's table"() {
      const page = await opened("calibrating");
      const panel = page.locator("#calibrations");
      const { data: left } = await command(page, { verb: "calibrate", action: "show" });
      if (left) await command(page, { verb: "calibrate", action: "discard", shown: left.key });
      await page.getByText("Calibrations", { exact: true }).click();
      await panel.getByText("Nothing is proposed.").waitFor();
      await panel.getByLabel("Scene").selectOption("felt");
      await panel.getByLabel("What the tip touches").selectOption("origin");
      const touch = panel.getByRole("button", { name: "Take a touch" });
      await touch.click();
      await panel.getByRole("heading", { name: "Proposed: sheet of felt, redo" }).waitFor();
      await panel.getByText("It cannot be accepted; the reasons are above.").waitFor();
      assert.equal(await panel.getByRole("button", { name: /^Accept/ }).count(), 0, "one touch can be accepted");
      // What another page has changed is not thrown away by the old one.
      const other = await open(page.context(), "another tab");
      const told = await command(other, { verb: "calibrate", action: "touch", scene: "felt", what: "sheet", of: "x", mm: null });
      assert.ok(told.done, told.text);
      await panel.getByRole("button", { name: "Throw it away" }).click();
      await panel.getByText(/the proposal is another one by now/).waitFor();
      await panel.locator("pre").getByText(/2 touches/).waitFor();
      await panel.getByText("Touches", { exact: true }).click();
      await panel.getByRole("button", { name: /^Take back touch 2/ }).click();
      await panel.getByText(/taken back/).waitFor();
      await panel.locator("pre").getByText(/1 touch\b/).waitFor();
      await panel.getByRole("button", { name: "Throw it away" }).click();
      await panel.getByText("Nothing is proposed.").waitFor();
      assert.equal(await panel.getByRole("button", { name: "Take torque off: the arms drop" }).isDisabled(), true);
      await page.getByText("Doctor", { exact: true }).click();
      await page.locator("#doctor").getByText("nothing is wrong, as far as the node sees it").waitFor();
      const rows = page.getByRole("region", { name: /^Servos on the bus of/ }).locator("tbody tr");
      assert.equal(await rows.count(), 6, "SO-101 has six servos");
      assert.match(await rows.first().textContent(), /\d\.\d V\d+ °Cnothing/);
      await accessible(page, "calibrating");
      await page.context().close();
    },

    async "a browser tells of what needs a person, once it was asked to"() {
      const context = await browser.newContext({ permissions: ["notifications"] });
      // The browser shows it; what it is given is written down beside.
      await context.addInitScript(() => {
        globalThis.told = [];
        const shown = globalThis.Notification;
        globalThis.Notification = class extends shown {
          constructor(title, options) {
            super(title, options);
            globalThis.told.push(`${title}: ${options.body}`);
          }
        };
      });
      const page = await open(context, "notices");
      await logIn(page);
      const stop = async () => {
        await page.keyboard.press("Escape");
        await page.getByText(/^Stop: standstill verified/).waitFor();
        await page.getByText(/^Latched: /).waitFor();
        const told = await page.evaluate(() => globalThis.told);
        await atRest(page);
        await page.getByText(/^Latched: /).waitFor({ state: "hidden" });
        return told;
      };
      assert.deepEqual(await stop(), [], "it tells though nobody asked for it");
      await page.getByRole("button", { name: "Tell me", exact: true }).click();
      await page.getByText("This browser tells you when").waitFor();
      const told = await stop();
      assert.ok(told.some((one) => /Needs you: .*stop/.test(one)), JSON.stringify(told));
      await context.close();
    },
  };
}
