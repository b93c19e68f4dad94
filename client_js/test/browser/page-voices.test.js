// The demo page's controls follow the checkpoint: its voices, words on how to speak, voices of one's own.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { wav } from "../../../realtime_tts/server/page/wav.js";
import { serve, skip } from "./harness.js";
import { faults, met, more, stream, until, visit } from "./page-visit.js";

const says = (page, words) =>
  page.waitForFunction((words) => document.querySelector("#own-said").textContent.includes(words), words);

/** Everything that the page asks sessions for. */
function asked(page) {
  const found = [];
  page.on("websocket", (socket) =>
    socket.on("framesent", ({ payload }) => {
      const message = JSON.parse(payload);
      if (message.type === "session.start") found.push(message);
    }),
  );
  return found;
}

/** From now on the server says of its checkpoints what `about` makes of it. */
async function becomes(page, about) {
  await page.unroute("**/v1/voices");
  await page.route("**/v1/voices", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), ...about } });
  });
  await page.reload();
  await page.waitForFunction(() => /^Ready/.test(document.querySelector("#state").textContent));
}

/** Two seconds of a tone, as a file in a form. */
function tone() {
  const samples = Int16Array.from({ length: 48_000 }, (_, at) => 9000 * Math.sin(at / 20));
  const buffer = Buffer.concat(wav([new Uint8Array(samples.buffer)], 24_000));
  return { name: "tone.wav", mimeType: "audio/wav", buffer };
}

/** A voice is recorded, another uploaded, both are blended, and one is deleted. */
async function own(t, url) {
  const page = await visit(t, url);
  await met(page);
  await page.click("#tab-several"); // its rows are there before the voices
  await page.click("#tab-speak");
  await more(page, "own");

  await page.click("#own-record");
  await page.waitForFunction(() => /\(2 s\)/.test(document.querySelector("#own-record").textContent));
  await page.click("#own-record");
  await says(page, "s of sound");
  const seconds = parseFloat((await page.textContent("#own-said")).match(/[\d.]+/)[0]);
  assert.ok(seconds > 1 && seconds < 20, `${seconds} s`);
  await page.fill("#own-name", "anna");
  await page.click("#own-read");
  await page.click("#own-form button[type=submit]");
  assert.equal(await page.evaluate(() => document.querySelector("#own-form").checkValidity()), false);
  assert.equal(await page.locator("#own-list li").count(), 0, "nobody agreed yet");
  await page.check("#own-consent");
  await page.click("#own-form button[type=submit]");
  await says(page, "anna is chosen, with its manner of speaking");
  assert.equal(await page.inputValue("#voice"), "anna");
  const anna = await page.evaluate(async () => (await fetch("/v1/voices/anna")).json());
  assert.equal(anna.text, (await page.textContent("#passage")).replace(/\s+/g, " "));

  await page.setInputFiles("#own-file", tone());
  await says(page, "There are 2.0 s of sound");
  await page.fill("#own-name", "anna");
  await page.fill("#own-text", "");
  await page.click("#own-form button[type=submit]");
  await says(page, "anna");
  await page.waitForSelector("#own-said.wrong");
  await page.fill("#own-name", "ben");
  await page.click("#own-form button[type=submit]");
  await says(page, "ben is chosen, by its sound alone");

  assert.deepEqual(await page.evaluate(faults), []);
  await page.fill("#blend-share", "30");
  await page.fill("#blend-name", "annaben");
  await page.click("#blend-form button[type=submit]");
  await says(page, "annaben is chosen");
  const [one, other, both] = await page.evaluate(() =>
    Promise.all(["anna", "ben", "annaben"].map(async (id) =>
      (await (await fetch(`/v1/voices/${id}/embedding`)).json()).embedding,
    )),
  );
  const apart = both.map((x, i) => Math.abs(x - 0.7 * one[i] - 0.3 * other[i]));
  assert.ok(Math.max(...apart) < 1e-6 && one.some((x, i) => x !== other[i]));
  await stream(page, "One two.");
  await until(page, "done");

  page.once("dialog", (dialog) => dialog.accept());
  await page.click("[data-delete=annaben]");
  await says(page, "annaben is deleted");
  const left = await page.$$eval("#voice option", (all) => all.map(({ value }) => value));
  assert.deepEqual(left.slice(-2), ["anna", "ben"]);
  const ofRow = await page.$$eval("#several li:first-child option", (all) => all.map(({ value }) => value));
  assert.deepEqual(ofRow, left);
  // What the browser itself says of the refusal is all there is.
  assert.deepEqual(page.errors.filter((error) => !/status of 409/.test(error)), []);
}

/** Words on how to speak are for the checkpoint that heeds them; what is left empty is left to it. */
async function heeds(page, sent) {
  const models = [
    { model: "fake", variant: "custom_voice", instructions: true },
    { model: "plain", variant: "custom_voice", instructions: false },
  ];
  const details = [
    { id: "alto", kind: "speaker", model: "fake" },
    { id: "bass", kind: "speaker", model: "plain" },
  ];
  await becomes(page, { models, details, voices: ["alto", "bass"], clones: false });
  await more(page, "options");
  await more(page, "details");
  assert.ok(await page.isHidden("#own"), "this server makes no voices");
  await page.selectOption("#voice", "alto");
  await page.fill("#instructions", "As a whisper.");
  await page.selectOption("#pacing", "sentence");
  await page.selectOption("#layout", "full_text");
  await stream(page, "One two.");
  await until(page, "done");
  const { voice, instructions, pacing, layout } = sent.at(-1);
  assert.deepEqual([voice, instructions, pacing, layout], ["alto", "As a whisper.", "sentence", "full_text"]);
  assert.equal(await page.textContent("#f-layout"), "full text");
  assert.equal(await page.textContent("#f-pacing"), "sentence");
  assert.match(await page.textContent("#f-ramp"), /^\d+( · \d+)*$/);
  await page.selectOption("#voice", "bass");
  assert.ok(await page.isHidden("#manner"), "the other checkpoint heeds no words");
  await page.selectOption("#layout", "auto");
  await stream(page, "One two.");
  await until(page, "done");
  assert.deepEqual([sent.at(-1).voice, sent.at(-1).instructions, sent.at(-1).layout], ["bass", null, null]);
  await page.selectOption("#voice", "alto");
  assert.equal(await page.inputValue("#instructions"), "As a whisper.", "what was typed stays");
}

/** A voice that is designed is described in words, from the first click on. */
async function designs(page, sent) {
  const models = [{ model: "fake", variant: "voice_design", instructions: true }];
  await becomes(page, { models, voices: [], details: [], default_voice: null });
  assert.equal(await page.textContent("#manner-label"), "Describe the voice");
  const description = await page.inputValue("#instructions");
  assert.ok(description.length > 20);
  await stream(page, "One two.");
  await until(page, "done");
  assert.deepEqual([sent.at(-1).voice, sent.at(-1).instructions], [null, description]);
}

/** A checkpoint whose voices are recorded asks for one, and no session is opened. */
async function asksForOne(page, sent) {
  const models = [{ model: "fake", variant: "base", instructions: false }];
  const before = sent.length;
  await becomes(page, { models, voices: [], details: [], default_voice: null, clones: true });
  await page.click("#play");
  await page.waitForFunction(() => /recorded voices/.test(document.querySelector("#state").textContent));
  assert.ok(await page.isVisible("#own-form"));
  assert.ok(await page.isHidden("#manner"));
  assert.equal(sent.length, before);
}

test("the controls are those of the checkpoint", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "voices-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { url } = await serve(t, "--engine", "fake", "--voices-dir", folder);

  await t.test("voices are recorded, uploaded, blended and deleted", (t) => own(t, url));
  await t.test("words on how to speak, and designed and recorded voices", async (t) => {
    const page = await visit(t, url);
    const sent = asked(page);
    await heeds(page, sent);
    await designs(page, sent);
    await asksForOne(page, sent);
    assert.deepEqual(page.errors, []);
  });
});
