// Steps of an operator's work on the page: pens changed, drawings placed by hand, trimmed, repeated and replayed, the arm jogged.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

export function operatingSteps({ browser, open, logIn, offerWords, drawWords, accessible, shot, folder }) {
  async function opened(name, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1366, height: 900 }, ...options });
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

  const draw = (page) => page.getByRole("button", { name: "Draw", exact: true });

  const tab = (page, name) => page.getByRole("tab", { name }).click();

  // Opens the details of the newest job.
  async function newestJob(page) {
    await tab(page, "Jobs");
    await page.waitForFunction(async () => {
      const { job } = (await (await fetch("/page/state")).json()).arms[0];
      return document.querySelector("#jobs-list summary")?.getAttribute("aria-label") === `Details of ${job.id}`;
    });
    await page.locator("#jobs-list summary").first().click();
  }

  const ended = (page, kind) => page.locator(`.head[data-kind=${kind}]`).waitFor({ timeout: 120_000 });

  return {
    async "an operator puts a drawing in its place by hand and by keyboard"() {
      const page = await opened("placing");
      await offerWords(page, "Hi", 30);
      const sheet = page.locator("svg.placing");
      const x = async () => Number(await page.getByLabel("Left, mm").inputValue());
      await sheet.focus();
      await page.keyboard.press("ArrowRight");
      const begun = await x();
      for (const key of ["ArrowRight", "Shift+ArrowRight", "ArrowUp"]) await page.keyboard.press(key);
      assert.ok(Math.abs(await x() - begun - 11) < 0.11, `${await x()} mm after ${begun}`);
      await draw(page).waitFor();
      await page.keyboard.press("+");
      assert.equal(Number(await page.getByLabel("Size, mm").inputValue()), 31.5);
      await page.keyboard.press(",");
      assert.equal(Number(await page.getByLabel("Turn, °").inputValue()), 5);
      await draw(page).waitFor();
      await accessible(page, "placing");
      // The focus stays where the hand is, though the sheet was drawn anew.
      assert.ok(await sheet.evaluate((node) => node === document.activeElement), "the sheet has lost the focus");
      const before = await x();
      const box = await page.locator(".page-outline").boundingBox();
      const middle = [box.x + box.width / 2, box.y + box.height / 2];
      await page.mouse.move(...middle);
      await page.mouse.down();
      await page.mouse.move(middle[0] - 20, middle[1], { steps: 4 });
      await page.mouse.up();
      assert.ok(await x() < before - 1, `${await x()} mm after ${before}`);
      await draw(page).waitFor();
      const corner = await page.locator("circle.handle").first().boundingBox();
      await page.mouse.move(corner.x + corner.width / 2, corner.y + corner.height / 2);
      await page.mouse.down();
      await page.mouse.move(corner.x + 320, corner.y + 110, { steps: 4 });
      await page.mouse.up();
      await page.locator("#offer .notes li").getByText(/the sheet/).waitFor();
      assert.ok(await page.locator(".placing .refused").count() > 0, "nothing is marked as refused");
      assert.ok(await page.locator(".placing .marks:not(.stale) path").count() > 0, "no place is marked");
      assert.equal(await draw(page).count(), 0, "what is refused can be drawn");
      await accessible(page, "refused");
      await page.screenshot({ path: join(folder, "refused.png") });
      await page.getByRole("button", { name: "Fit", exact: true }).click();
      await draw(page).waitFor();
      const size = Number(await page.getByLabel("Size, mm").inputValue());
      assert.ok(size > 60 && size < 100, `it fits at ${size} mm`);
      await page.context().close();
    },

    async "a file that is dropped and an SVG that is pasted are shown on the paper"() {
      const page = await opened("dropping");
      const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="20mm" height="20mm" viewBox="0 0 20 20"><circle cx="10" cy="10" r="9" fill="none" stroke="black"/></svg>';
      await tab(page, "Jobs");
      await page.evaluate((text) => {
        const data = new DataTransfer();
        data.items.add(new File([text], "ring.svg"));
        document.querySelector("#paper").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
      }, svg);
      await page.getByText(/ring.* in default: not drawn yet/).waitFor();
      await draw(page).waitFor();
      await page.getByLabel("or type a text").fill(svg);
      await page.getByText(/pasted.* in default: not drawn yet/).waitFor();
      await draw(page).waitFor();
      await page.context().close();
    },

    async "paper, letters, areas and a grid are chosen by hand"() {
      const page = await opened("choices");
      await offerWords(page, "Hi", 30);
      const facts = () => page.locator("#offer .facts").textContent();
      const plain = await facts();
      const planned = async (change) => {
        await change();
        await draw(page).waitFor({ state: "hidden" });
        await draw(page).waitFor({ timeout: 60_000 });
      };
      await page.getByText("Paper, letters and areas", { exact: true }).click();
      assert.equal(await page.locator("#draw-fill").isVisible(), false, "words have no areas");
      await planned(() => page.locator("#draw-font").selectOption("serif"));
      assert.notEqual(await facts(), plain, "the letters are those of before");
      await planned(() => page.locator("#draw-paper").selectOption("a6-landscape"));
      await page.getByRole("group", { name: /^The sheet of 148 by 105 mm/ }).waitFor();
      await page.getByRole("button", { name: "Grid" }).click();
      assert.equal(await page.locator(".grid path").count(), 14 + 10, "a line each 10 mm");
      await accessible(page, "choices");
      await page.screenshot({ path: join(folder, "choices.png") });
      const square = '<svg xmlns="http://www.w3.org/2000/svg" width="20mm" height="20mm" viewBox="0 0 20 20"><path d="M0 10H20" stroke="black"/><path d="M5 5H15V15H5Z"/></svg>';
      await planned(() => page.getByLabel("or type a text").fill(square));
      const bare = await facts();
      await planned(() => page.locator("#draw-hide").check());
      const hidden = await facts();
      assert.notEqual(hidden, bare, "the line behind the square is drawn");
      await planned(() => page.locator("#draw-fill").selectOption("hatch"));
      assert.notEqual(await facts(), hidden, "the square is not filled");
      // A program without fonts says so.
      await page.getByLabel("or type a text").fill(square.replace("</svg>", '<text y="19" font-size="5">Hi</text></svg>'));
      await draw(page).waitFor({ state: "hidden" });
      await page.locator("#draw-font").selectOption("outlines");
      await page.getByText(/^Not planned: .*this machine's fonts/).or(draw(page)).first().waitFor({ timeout: 60_000 });
      await page.getByRole("button", { name: "Grid" }).click();
      assert.equal(await page.locator(".grid").count(), 0);
      await page.context().close();
    },

    async "a picture that is dropped is drawn in the lines and the time that are chosen"() {
      const page = await opened("picture");
      const picture = [...await readFile("tests/pictures/shades.png")];
      await page.evaluate((bytes) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], "shades.png", { type: "image/png" }));
        document.querySelector("#paper").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
      }, picture);
      await page.getByText(/shades.* in default: not drawn yet/).waitFor();
      await draw(page).waitFor();
      const facts = () => page.locator("#offer .facts").textContent();
      const hatched = await facts();
      await page.getByLabel("Lines", { exact: true }).selectOption("spiral");
      await page.getByLabel("At most, min").fill("2");
      await page.getByText(/% of the ink, to take at most 2 min/).waitFor({ timeout: 60_000 });
      await draw(page).waitFor();
      assert.notEqual(await facts(), hatched, "the lines are those of before");
      await accessible(page, "picture");
      await draw(page).click();
      await ended(page, "moving");
      await page.keyboard.press("Escape");
      await page.getByText(/^Stop: standstill verified/).waitFor();
      await atRest(page);
      await page.context().close();
    },

    async "what is left of a held drawing is trimmed, planned and judged anew, and its ink stays whole"() {
      const page = await opened("trimming");
      await drawWords(page, "Hello", 40);
      await page.getByText(/ [1-4] of \d+$/).waitFor({ timeout: 60_000 });
      await page.getByRole("button", { name: "Hold", exact: true }).click();
      await page.getByRole("button", { name: "Hold now" }).click();
      await ended(page, "held");
      await page.getByRole("button", { name: /^End here and park/ }).click();
      await page.getByText(/^What is left of job-/).waitFor({ timeout: 60_000 });
      await draw(page).waitFor({ timeout: 60_000 });
      const time = async () => page.locator("#offer .facts").textContent();
      const untrimmed = await time();
      for (const [raise, words] of [["1.5", /raise_mm. is 1.5/], ["0.3", null]]) {
        await page.getByLabel("Raise the pen by, mm").fill(raise);
        await page.getByLabel("Drawing speed, %").fill("50");
        await draw(page).waitFor({ state: "hidden" });
        if (words) await page.getByText(words).waitFor();
      }
      await draw(page).waitFor();
      assert.notEqual(await time(), untrimmed, "half the speed takes as long");
      await draw(page).click();
      await ended(page, "moving");
      // What the first job drew is on the paper of the second.
      await page.locator("path.ink[d]").nth(1).waitFor({ state: "attached" });
      await page.keyboard.press("Escape");
      await page.getByText(/^Stop: standstill verified/).waitFor();
      await newestJob(page);
      const understood = await page.locator("#jobs details[open] dt:text-is('Understood') + dd").first().textContent();
      assert.match(understood, /raise mm 0.3/);
      assert.match(understood, /speed percent 50/);
      // The yes is in the audit log, under the name of who gave it.
      await page.locator("#jobs details[open] dd").getByText(/\(page\): draw: .*speed percent 50/).first().waitFor();
      await atRest(page);
      await page.context().close();
    },

    async "an earlier drawing is shown again and replayed on a simulated arm"() {
      const page = await opened("again");
      await drawWords(page, "I", 12);
      await ended(page, "moving");
      await ended(page, "standing");
      await newestJob(page);
      await page.getByRole("button", { name: /^Replay on a simulated arm job-/ }).first().click();
      await page.getByText(/: the same plan [0-9a-f]+\. On the simulator/).waitFor({ timeout: 60_000 });
      await page.getByAltText(/on the simulated arm$/).waitFor();
      await page.getByRole("button", { name: /^Again job-\d+/ }).first().click();
      await page.getByText(/again, from its beginning/).waitFor();
      await draw(page).waitFor();
      assert.equal(await page.locator(".head").getAttribute("data-kind"), "standing", "showing it again has begun it");
      await page.getByRole("button", { name: "Something else" }).click();
      await accessible(page, "again");
      await page.context().close();
    },

    async "one yes in two tabs, each pressed twice, begins one drawing"() {
      const one = await opened("first tab");
      const other = await open(one.context(), "second tab");
      for (const page of [one, other]) await offerWords(page, "V", 12);
      const count = () => one.evaluate(async () => (await (await import("/page/door.js")).read("/page/jobs")).length);
      const before = await count();
      // At once, and only what is there: a click that waits would press the button that is back once the drawing has ended.
      const pressTwice = () => {
        const button = document.querySelector("#draw-buttons .draw");
        for (let times = 0; times < 2; times += 1) button?.click();
      };
      await Promise.all([one, other].map((page) => page.evaluate(pressTwice)));
      await ended(one, "moving");
      await ended(one, "standing");
      assert.equal(await count(), before + 1);
      await one.context().close();
    },

    async "a person changes the pens of a drawing"() {
      const page = await opened("pens");
      const stranger = await open(await browser.newContext(), "pens, logged out");
      const drawing = command(page, { verb: "first_ink", scene: "pens_by_hand" });
      // A step that fails closes the page first.
      drawing.catch(() => {});
      await ended(page, "waits_for_person");
      await page.locator("#next button").getByText("The pen is in: continue").waitFor();
      await tab(page, "Jobs");
      const first = page.getByRole("button", { name: "Pen 1 black is in: go on" });
      await first.waitFor({ timeout: 60_000 });
      await page.getByText(/waits for pen 1 `black` \(#1a1a2e\)/).first().waitFor();
      await page.getByRole("img", { name: "Colour #1a1a2e" }).waitFor();
      await tab(stranger, "Jobs");
      await stranger.getByText("A pen is to be changed").waitFor();
      assert.equal(await stranger.locator("#pens-list").getByRole("button").count(), 0, "nobody has logged in there");
      await accessible(page, "pen change");
      await shot(page, "pen-change");
      await first.dblclick();
      const red = page.getByRole("button", { name: "Pen 2 red is in: go on" });
      await red.click({ timeout: 120_000 });
      await red.waitFor({ state: "hidden" });
      // The head's own button says the same of the third.
      await page.locator("#next button").getByText("The pen is in: continue").click({ timeout: 120_000 });
      const drawn = await drawing;
      assert.ok(drawn.done, drawn.text);
      await page.getByText("A pen is to be changed").waitFor({ state: "hidden" });
      await atRest(page);
      await stranger.context().close();
      await page.context().close();
    },

    async "an operator jogs the arm, sees it in space and reads its calibrations"() {
      const page = await opened("setting up");
      await tab(page, "Set-up");
      await page.getByText("First line", { exact: true }).click();
      await page.getByRole("button", { name: "Visit the sheet" }).click();
      await page.locator("#first-steps").getByText(/points visited/).waitFor({ timeout: 120_000 });
      await tab(page, "Arm");
      await page.getByText(/^Jog: one small step/).click();
      const place = page.locator("#jog-place");
      await place.getByText(/Tip at/).waitFor();
      const before = await place.textContent();
      await page.getByRole("button", { name: "z plus" }).click();
      await page.waitForFunction((old) => document.getElementById("jog-place").textContent !== old, before);
      await page.getByRole("img", { name: /^shoulder_pan of .* between -\d+° and \d+°/ }).waitFor();
      await tab(page, "Set-up");
      await page.getByText("Calibrations", { exact: true }).click();
      await page.getByText("1 calibration", { exact: true }).waitFor();
      await page.locator("#calibrations-list").getByRole("img", { name: /^Distance of 18 touches from the fit, at most \d/ }).waitFor();
      assert.equal(await page.locator("#calibrations-list svg.residuals rect").count(), 18);
      await tab(page, "Arm");
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
      await tab(page, "Set-up");
      await page.getByText("Calibrations", { exact: true }).click();
      await panel.getByRole("heading", { name: /^Proposed: sheet of felt, (good|usable)/ }).waitFor();
      await page.screenshot({ path: join(folder, "proposal.png") });
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
      await tab(page, "Arm");
      await page.getByRole("button", { name: /^Look closer/ }).click();
      const seen = page.locator("div.arm .words");
      await seen.getByText(/4 tags/).first().waitFor();
      const pictures = page.getByAltText(/of a camera with the sheet that was found/);
      await pictures.first().waitFor();
      await page.locator("div.arm img").last().screenshot({ path: join(folder, "camera.png") });
      const layer = page.getByLabel("Camera over the paper, in percent");
      await layer.fill("60");
      await page.locator("#paper output").getByText(/^top, /).waitFor({ timeout: 60_000 });
      assert.equal(await page.locator("#paper image").getAttribute("opacity"), "0.6");
      await accessible(page, "the camera over the paper");
      await page.screenshot({ path: join(folder, "camera-layer.png") });
      await layer.fill("0");
      await atRest(page);
      await page.context().close();
    },

    async "an operator calibrates: a touch by hand, a proposal that changed meanwhile, and the doctor's table"() {
      const page = await opened("calibrating");
      const panel = page.locator("#calibrations");
      const { data: left } = await command(page, { verb: "calibrate", action: "show" });
      if (left) await command(page, { verb: "calibrate", action: "discard", shown: left.key });
      await tab(page, "Set-up");
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
      await panel.getByText(/the proposal has changed/).waitFor();
      await panel.locator("pre").getByText(/2 touches/).waitFor();
      await panel.getByText("Touches", { exact: true }).click();
      await panel.getByRole("button", { name: /^Take back touch 2/ }).click();
      await panel.getByText(/removed/).waitFor();
      await panel.locator("pre").getByText(/1 touch\b/).waitFor();
      await panel.getByRole("button", { name: "Throw it away" }).click();
      await panel.getByText("Nothing is proposed.").waitFor();
      assert.equal(await panel.getByRole("button", { name: "Take torque off: the arms drop" }).isDisabled(), true);
      await tab(page, "Arm");
      await page.getByText(/^Doctor: /).click();
      await page.locator("#doctor").getByText("the node sees no problem").waitFor();
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
        await ended(page, "stopped");
        const told = await page.evaluate(() => globalThis.told);
        await atRest(page);
        await ended(page, "at_rest");
        return told;
      };
      assert.deepEqual(await stop(), [], "it tells though nobody requested it");
      await tab(page, "Set-up");
      await page.getByRole("button", { name: "Tell me", exact: true }).click();
      await page.getByText("This browser tells you when").waitFor();
      const told = await stop();
      assert.ok(told.some((one) => /Needs you: .*stop/.test(one)), JSON.stringify(told));
      await context.close();
    },
  };
}
