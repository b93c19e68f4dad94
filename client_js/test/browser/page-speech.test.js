// The demo page speaks: against a real server with the fake engine, whose tones come at once.
import assert from "node:assert/strict";
import { test } from "node:test";

import { server, skip } from "./harness.js";
import { does, endless, figure, interrupted, met, more, state, stream, until, visit, words } from "./page-visit.js";

const LONG = "The tide is coming in, slowly but surely, and all the boats are afloat again. ".repeat(3);

/** Runs in the page: once it `hurries`, no key for eight seconds is none for 50 ms. */
const hurry = () => {
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (act, ms, ...rest) => {
    const soon = ms === 8000 && globalThis.hurries;
    if (soon) globalThis.hurries += 1;
    return setTimeout(act, soon ? 50 : ms, ...rest);
  };
};

/** Runs in the page: whether it is `silent`, having played what had come. */
const silence = () => {
  const { dispatchEvent } = EventTarget.prototype;
  EventTarget.prototype.dispatchEvent = function (event) {
    if (/^(packet|underrun)$/.test(event.type)) globalThis.silent = event.type === "underrun";
    return dispatchEvent.call(this, event);
  };
};

test("the demo page", { skip }, async (t) => {
  const url = await server();

  await t.test("speaks while somebody types, is held between, and ends", async (t) => {
    // A busy machine leaves gaps of its own in the last word: it comes in one piece, into silence.
    let last = null;
    const before = async (page) => {
      await page.addInitScript(silence);
      await page.routeWebSocket(/\/v1\/tts/, (socket) => {
        socket.connectToServer().onMessage((message) => {
          if (!last) return socket.send(message);
          last.push(message);
          if (String(message).includes("turn.done")) last.splice(0).forEach((one) => socket.send(one));
        });
      });
    };
    const page = await visit(t, url, { before });
    await met(page);
    await page.click("#tab-type");
    await page.click("#typed");
    await page.keyboard.type("One two ", { delay: 20 });
    await until(page, "held");
    assert.ok((await figure(page, "packets")) > 0);
    assert.ok((await figure(page, "ttfa")) > 0);
    await page.waitForFunction(() => globalThis.silent);
    last = [];
    const packets = await figure(page, "packets");
    await page.keyboard.type("three", { delay: 20 });
    await page.keyboard.press("Enter");
    await until(page, "done");
    assert.ok((await figure(page, "packets")) > packets);
    assert.equal(await words(page, "heard"), "One two three");
    assert.match(await page.textContent("#announce"), /Done/);
    assert.equal(await page.textContent("#f-underruns"), "0");
    assert.deepEqual(page.errors, []);
  });

  await t.test("sends no unfinished word, takes none back, and keeps no place for who types no more", async (t) => {
    const page = await visit(t, url, { hash: "#type", before: (page) => page.addInitScript(hurry) });
    await met(page);
    await page.click("#typed");
    await page.keyboard.type("One tw");
    await until(page, "held");
    assert.equal(await page.textContent("#transcript"), "One ");
    for (let i = 0; i < 4; i++) await page.keyboard.press("Backspace");
    assert.equal(await page.inputValue("#typed"), "On", "the field is as it was typed");
    assert.match(await page.textContent("#typed-note"), /cannot be taken back/);
    await page.keyboard.type("wards. ");
    await page.waitForFunction(() => document.querySelector("#transcript").textContent === "One wards. ");
    assert.equal(await page.inputValue("#typed"), "Onwards. ");
    await page.evaluate(() => (globalThis.hurries = 1));
    await page.keyboard.press("Space"); // the last key for long
    await until(page, "done");
  });

  await t.test("goes on with what is typed while a long text is still spoken", async (t) => {
    const page = await visit(t, url, { hash: "#type", before: (page) => page.addInitScript(hurry) });
    await met(page);
    await page.fill("#typed", LONG);
    await page.waitForFunction(() => document.querySelector("#transcript .heard"));
    await page.evaluate(() => (globalThis.hurries = 1));
    await page.focus("#typed");
    await page.keyboard.press("Control+End");
    await page.keyboard.type("And "); // the last key for long
    await page.waitForFunction(() => globalThis.hurries > 6);
    await page.evaluate(() => (globalThis.hurries = 0));
    await page.keyboard.type("more. ");
    await page.waitForFunction((all) => document.querySelector("#transcript").textContent === all, `${LONG}And more. `);
    assert.match(await state(page), /^(speaking|held)$/);
  });

  await t.test("speaks what is typed while it is being interrupted", async (t) => {
    let arrive;
    const arrived = new Promise((resolve) => (arrive = resolve));
    const before = (page) =>
      page.routeWebSocket(/\/v1\/tts/, (socket) => {
        let way = Promise.resolve();
        socket.connectToServer().onMessage((message) => {
          if (String(message).includes("turn.interrupted")) way = arrived;
          void way.then(() => socket.send(message));
        });
      });
    const page = await visit(t, url, { hash: "#type", before });
    await met(page);
    await page.fill("#typed", LONG);
    await page.waitForFunction(() => document.querySelector("#transcript .heard"));
    await page.keyboard.press("Escape");
    await until(page, "interrupted");
    await page.focus("#typed");
    await page.keyboard.press("Control+End");
    await page.keyboard.type("Wait. ");
    arrive();
    await page.waitForFunction(() => document.querySelector("#transcript .heard")?.textContent.startsWith("Wait"));
    assert.equal(await page.textContent("#transcript"), "Wait. ");
  });

  await t.test("plays what was typed again, and what is typed next by itself", async (t) => {
    const page = await visit(t, url, { hash: "#type" });
    await met(page);
    await page.fill("#typed", "One two three");
    await page.press("#typed", "Enter");
    await until(page, "done");
    assert.equal(await words(page, "heard"), "One two three");
    await page.click("#play");
    await until(page, "speaking");
    await until(page, "done");
    assert.equal(await words(page, "heard"), "One two three");
    await page.focus("#typed");
    await page.keyboard.press("End");
    await page.keyboard.type(". Four. ");
    await page.waitForFunction(() => document.querySelector("#transcript").textContent === ". Four. ");
    assert.equal(await page.inputValue("#typed"), "One two three. Four. ");
  });

  await t.test("says after an interrupt what was heard and what was not", async (t) => {
    const text = "One. Two. ".repeat(24);
    const page = await visit(t, url);
    await met(page);
    await stream(page, text);
    await page.waitForFunction(() => document.querySelector("#transcript .heard"));
    await page.click("#play");
    await interrupted(page);
    const [heard, missed] = [await words(page, "heard"), await words(page, "missed")];
    assert.ok(heard && missed && text.startsWith(heard), heard);
    assert.ok(text.replaceAll(/\s/g, "").startsWith((heard + missed).replaceAll(/\s/g, "")));
    const announced = await page.textContent("#announce");
    assert.equal(announced, `Interrupted. Heard: ${heard} Not heard: ${missed.replace(/\w$/, "$&.")}`);
    const packets = await figure(page, "packets");
    await page.waitForTimeout(300);
    assert.equal(await figure(page, "packets"), packets, "nothing comes after it");
    await does(page, "play");
  });

  await t.test("is interrupted by the keyboard: Space outside of fields, Escape anywhere", async (t) => {
    const page = await visit(t, url);
    await met(page);
    await stream(page, LONG);
    await page.focus("#text");
    await page.keyboard.press("Space");
    await page.waitForTimeout(100);
    assert.match(await state(page), /^(speaking|held)$/);
    await page.keyboard.press("Escape");
    await interrupted(page);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.down("Space");
    await until(page, "speaking");
    await page.keyboard.down("Space"); // it is held, and repeats
    await page.keyboard.up("Space");
    await page.evaluate(() => new Promise(requestAnimationFrame));
    assert.match(await state(page), /^(speaking|held)$/);
    await page.keyboard.press("Space");
    await interrupted(page);
  });

  await t.test("lets voices be listened to, one after the other", async (t) => {
    const page = await visit(t, url);
    await met(page);
    await stream(page, LONG);
    await page.fill("#text", "Quite another text.");
    await page.click("[data-voice=tenor]");
    await until(page, "done");
    assert.equal(await words(page, "heard"), "Quite another text.");
    assert.equal(await page.inputValue("#voice"), "tenor");
    assert.equal(await page.getAttribute("[data-voice=tenor]", "aria-pressed"), "true");
    assert.deepEqual(page.errors, []);
  });

  await t.test("speaks with the voice that was asked for last, however slow the network is", async (t) => {
    const slow = () => {
      const { send } = WebSocket.prototype;
      globalThis.sent = [];
      WebSocket.prototype.send = function (data) {
        sent.push(JSON.parse(data));
        setTimeout(() => send.call(this, data), 200);
      };
    };
    const page = await visit(t, url, { before: (page) => page.addInitScript(slow) });
    await met(page);
    await page.click("[data-voice=tenor]");
    await until(page, "speaking");
    await page.click("[data-voice=bass]");
    await page.click("[data-voice=tenor]"); // before the server has said anything about the bass
    await until(page, "speaking");
    const voice = await page.evaluate(() => {
      const last = sent.findLastIndex(({ type }) => type === "text");
      return sent.slice(0, last).findLast(({ type }) => type === "session.start").voice;
    });
    assert.equal(voice, "tenor");
  });

  await t.test("is connected before the first click, and says what is what in one line", async (t) => {
    let loaded = 0;
    const loading = (route) => {
      const message = `the engine is loading: warm-up, ${++loaded} of 4`;
      return loaded > 3 ? route.continue() : route.fulfill({ status: 503, json: { message } });
    };
    const page = await visit(t, url, { before: (page) => page.route("**/v1/voices", loading) });
    for (const words of ["Not ready yet: the engine is loading: warm-up, 2 of 4 …", "Ready: fake on"]) {
      await page.waitForFunction((words) => document.querySelector("#state").textContent.startsWith(words), words);
      assert.equal(await page.getAttribute("#state", "role"), null, "nothing is wrong");
    }
    assert.ok(await page.isEnabled("#play"));
    assert.ok(await page.isHidden("#hero"));
    await stream(page, "One two.");
    await until(page, "done");
    assert.match(await page.textContent("#state"), /^Done: \d\.\d s of speech$/);
    assert.match(await page.textContent("#hero"), /^First sound after \d+ ms$/);
  });

  await t.test("speaks with several voices at once, a row each", async (t) => {
    const page = await visit(t, url, { before: (page) => page.addInitScript(endless) });
    await met(page);
    assert.equal(await page.locator("#several li").count(), 0, "no loudspeaker is asked for in vain");
    await page.click("#tab-several");
    await page.fill("#rows", "4");
    const rows = page.locator("#several li");
    assert.equal(await rows.count(), 4);
    const voices = await page.$$eval("#several select", (all) => all.map((one) => one.value));
    assert.equal(new Set(voices).size, 4);
    await page.click("#play");
    await page.waitForFunction(() =>
      [...document.querySelectorAll("#several .says")].every((one) => /TTFA/.test(one.textContent)),
    );
    await page.locator("#several button").first().click();
    assert.equal(await page.locator("#several button").first().getAttribute("aria-pressed"), "false");
    await page.click("#play");
    await page.waitForFunction(() =>
      [...document.querySelectorAll("#several .says")].every((one) => /interrupted/.test(one.textContent)),
    );
    await page.fill("#rows", "2");
    assert.equal(await rows.count(), 2);
    assert.deepEqual(page.errors, []);
  });

  await t.test("gives what was spoken as a WAV file", async (t) => {
    const page = await visit(t, url);
    await met(page);
    await stream(page, "One two three four.");
    await until(page, "done");
    await more(page, "details");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
    assert.equal(download.suggestedFilename(), "speech.wav");
    const file = Buffer.concat(await (await download.createReadStream()).toArray());
    const seconds = parseFloat((await page.textContent("#state")).match(/[\d.]+/)[0]);
    assert.ok(Math.abs((file.length - 44) / 48_000 - seconds) < 0.06, `${file.length} bytes`);
    const samples = new Int16Array(file.buffer.slice(file.byteOffset + 44, file.byteOffset + file.length));
    assert.ok(samples.some((sample) => Math.abs(sample) > 1000));
  });

  await t.test("copies the same as a program", async (t) => {
    const page = await visit(t, url);
    await met(page);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await more(page, "options");
    await more(page, "code");
    await page.selectOption("#voice", "bass");
    await page.fill("#text", "Copy me.");
    const has = { curl: "/v1/audio/speech", python: "speak_to_wav", javascript: "tts.speak", openai: "OpenAI(" };
    for (const [name, part] of Object.entries(has)) {
      await page.click(`#tab-${name}`);
      await page.click("#copy");
      await page.waitForFunction(() => document.querySelector("#copied").textContent === "Copied");
      const text = await page.evaluate(() => navigator.clipboard.readText());
      assert.ok(await page.isVisible(`#panel-${name}`));
      assert.equal(await page.textContent(`#program-${name}`), text, "what is shown");
      await page.evaluate(() => (document.querySelector("#copied").textContent = ""));
      assert.ok(text.includes(part) && text.includes("Copy me.") && text.includes("bass") && text.includes(url), text);
    }
  });
});
