// The chat of the demo page, with a model made up, and the microphone beside it.
import assert from "node:assert/strict";
import { test } from "node:test";

import { server, skip } from "./harness.js";
import { LONG, interrupted, met, refusing, state, trouble, until, visit, words } from "./page-visit.js";

/** The page as the chat example serves it, with a model that says `reply`. */
async function chat(t, reply, { error = "{}", before } = {}) {
  const url = await server();
  const asked = [];
  const page = await visit(t, url, {
    hash: "#chat",
    before: async (page) => {
      await before?.(page);
      await page.route("**/v1/voices", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, headers: { ...response.headers(), "x-chat-model": "made%20up" } });
      });
      await page.route("**/chat", async (route) => {
        asked.push(route.request().postDataJSON().messages);
        const deltas = reply.match(/.{1,4}/g).map((delta) => JSON.stringify({ delta }));
        await route.fulfill({ body: [...deltas, error].join("\n") });
      });
    },
  });
  await met(page);
  return { page, asked };
}

test("the chat is spoken; typing interrupts it, and the model learns what was heard", { skip }, async (t) => {
  const { page, asked } = await chat(t, LONG);
  await page.fill("#chat-say", "Hello");
  await page.press("#chat-say", "Enter");
  await page.waitForFunction(() => document.querySelector("#transcript .heard")?.textContent.length > 10);
  await page.click("#chat-say");
  await page.keyboard.type("A");
  await interrupted(page);
  const heard = await words(page, "heard");
  await page.keyboard.type("nd now?");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#chat-log li").length === 4);
  await until(page, "speaking");
  const busy = await page.$$eval("#chat-log li", (lines) => lines.map((line) => line.ariaBusy));
  assert.deepEqual(busy, [null, null, null, "true"], "what still grows is not read out");
  assert.ok(heard.length > 3 && heard.length < LONG.length - 50, heard);
  assert.deepEqual(asked, [
    [{ role: "user", content: "Hello" }],
    [
      { role: "user", content: "Hello" },
      { role: "assistant", content: heard },
      { role: "user", content: "And now?" },
    ],
  ]);
  assert.match(await page.textContent("#chat-log li:nth-child(2)"), /\(interrupted\)/);
  assert.deepEqual(page.errors, []);
});

test("Hebrew runs from right to left: what is written, answered, spoken and not heard", { skip }, async (t) => {
  const { page } = await chat(t, `שלום. ${LONG}`); // the voice leaves the Hebrew out
  const direction = (one) => page.$$eval(one, (all) => all.map((each) => getComputedStyle(each).direction));
  const fields = await page.$$eval("textarea", (all) => all.map((field) => (field.value = "שלום")).length);
  assert.deepEqual(await direction("textarea"), Array(fields).fill("rtl"));
  await page.press("#chat-say", "Enter");
  await page.waitForFunction(() => document.querySelector("#transcript .heard")?.textContent.length > 10);
  assert.deepEqual(await direction("#transcript, #chat-log li"), ["rtl", "rtl", "rtl"]);
  await page.keyboard.press("Escape");
  await interrupted(page);
  assert.deepEqual(await direction("#transcript, #transcript .label"), ["rtl", "ltr", "ltr"]);
});

test("what the model could not say is said in words, and what it said is heard", { skip }, async (t) => {
  const { page } = await chat(t, "One moment.", { error: '{"error": "The language model is busy."}' });
  await page.fill("#chat-say", "Hello");
  await page.click("#chat-form button");
  await trouble(page, "The language model is busy.");
  await page.waitForFunction(() => document.querySelector("#transcript .heard")?.textContent === "One moment.");
});

test("a reply that breaks off is spoken as far as it came, and that is said in words", { skip }, async (t) => {
  const breaks = () => {
    const { fetch } = globalThis;
    const start = (out) => {
      out.enqueue(new TextEncoder().encode('{"delta": "One moment."}\n'));
      setTimeout(() => out.error(new TypeError("network error")), 100);
    };
    globalThis.fetch = async (path, init) =>
      path === "/chat" ? new Response(new ReadableStream({ start })) : fetch(path, init);
  };
  const { page } = await chat(t, "none", { before: (page) => page.addInitScript(breaks) });
  await page.fill("#chat-say", "Hello");
  await page.click("#chat-form button");
  await trouble(page, "The reply broke off");
  await page.waitForFunction(() => document.querySelector("#transcript .heard")?.textContent === "One moment.");
});

const WAIT_MS = 60_000; // that nobody waits: the page's clock is put forward

/** A chat whose server is full until `room` says that there is room. */
async function refused(t, reply) {
  let room = false;
  const before = async (page) => {
    await page.clock.install();
    await refusing(page, () => !room, WAIT_MS);
  };
  const { page, asked } = await chat(t, reply, { before });
  await page.press("#chat-say", "H");
  await page.press("#chat-say", "Enter");
  await trouble(page, "The server is full: all sessions are taken. Trying again in");
  return { page, asked, room: () => (room = true) };
}

test("a reply that could not be spoken is asked for again", { skip }, async (t) => {
  const { page, asked, room } = await refused(t, "One moment.");
  room();
  await page.clock.fastForward(WAIT_MS);
  await until(page, "done");
  assert.deepEqual(asked, Array(2).fill([{ role: "user", content: "H" }]));
  assert.equal(await page.textContent("#chat-log li:last-child"), "ReplyOne moment.");
  assert.equal(await page.locator("#chat-log li").count(), 2);
});

test("a reply that could not be spoken is none that was heard", { skip }, async (t) => {
  const { page, asked, room } = await refused(t, "One moment.");
  await page.press("#chat-say", "A"); // who says more does not wait for the last reply
  room();
  await page.clock.fastForward(WAIT_MS);
  await page.waitForFunction(() => document.querySelector("#state").dataset.state !== "trouble");
  assert.equal(asked.length, 1);
  await page.press("#chat-say", "Enter");
  await until(page, "done");
  const user = (content) => ({ role: "user", content });
  assert.deepEqual(asked.at(-1), [user("H"), user("A")]);
});

test("a refused microphone is said in words", { skip }, async (t) => {
  const { page } = await chat(t, "Hello.");
  await page.evaluate(() => {
    navigator.mediaDevices.getUserMedia = async () => {
      throw new DOMException("no", "NotAllowedError");
    };
  });
  await page.click("#mic");
  await trouble(page, "The browser refused the microphone");
  assert.equal(await page.isChecked("#mic"), false);
});

/** Runs in the page: the person takes a moment to allow the microphone. `streams`: those there were. */
const hesitates = () => {
  const { mediaDevices } = navigator;
  const ask = mediaDevices.getUserMedia.bind(mediaDevices);
  globalThis.streams = [];
  mediaDevices.getUserMedia = async (wanted) => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    streams.push(await ask(wanted));
    return streams.at(-1);
  };
};
const open = (page) =>
  page.evaluate(() => streams.filter((stream) => stream.active).length);

test("a microphone that is asked for twice is closed", { skip }, async (t) => {
  const { page } = await chat(t, "Hello.", { before: (page) => page.addInitScript(hesitates) });
  for (let i = 0; i < 3; i++) await page.click("#mic");
  await page.waitForFunction(() => streams.length === 2 && !document.querySelector("#mic-settings").hidden);
  await page.click("#mic");
  assert.equal(await open(page), 0);
  await page.evaluate(() => {
    document.querySelector("#own").hidden = false;
    document.querySelector("#own").open = true;
  });
  await page.dblclick("#own-record");
  await page.waitForFunction(() => /Stop \(1 s\)/.test(document.querySelector("#own-record").textContent));
  await page.click("#own-record");
  await page.waitForFunction(() => /s of sound/.test(document.querySelector("#own-said").textContent));
  assert.equal(await open(page), 0);
  assert.equal(await page.textContent("#own-record"), "Record again");
});

test("a loud voice interrupts", { skip }, async (t) => {
  const { page } = await chat(t, LONG);
  await page.evaluate(() => {
    // A microphone that hears a tone once `speakUp()` is called.
    navigator.mediaDevices.getUserMedia = async () => {
      const context = new AudioContext();
      const room = context.createMediaStreamDestination();
      globalThis.speakUp = () => {
        const voice = new OscillatorNode(context);
        voice.connect(room);
        voice.start();
      };
      return room.stream;
    };
  });
  await page.check("#mic");
  await page.waitForSelector("#mic-settings:not([hidden])");
  await page.fill("#chat-say", "Hello");
  await page.press("#chat-say", "Enter");
  await until(page, "speaking");
  await page.waitForTimeout(400);
  assert.match(await state(page), /^(speaking|held)$/, "silence is no voice");
  await page.evaluate(() => globalThis.speakUp());
  await interrupted(page);
});

/** The browser's speech recognition, as far as a page sees it: `say` is called for what it hears. */
function recognition() {
  globalThis.heardOf = [];
  delete globalThis.SpeechRecognition;
  globalThis.webkitSpeechRecognition = class {
    start(track) {
      globalThis.heardOf.push(track.kind);
      globalThis.say = (transcript, isFinal) =>
        this.onresult({ resultIndex: 0, results: [Object.assign([{ transcript }], { isFinal })] });
      globalThis.fail = (error) => (this.onerror({ error }), this.onend());
    }
    abort() {}
  };
}

test("the chat has ears where the browser recognises speech, and no echo is taken for words", { skip }, async (t) => {
  const { page, asked } = await chat(t, LONG, { before: (page) => page.addInitScript(recognition) });
  await page.check("#ears");
  await page.waitForFunction(() => globalThis.heardOf.length === 1);
  await page.evaluate(() => globalThis.say("hello", false));
  assert.equal(await page.inputValue("#chat-say"), "hello");
  await page.evaluate(() => globalThis.say("hello there", true));
  await page.waitForFunction(() => document.querySelector("#transcript .heard")?.textContent.length > 4);
  await page.evaluate(() => globalThis.fail("no-speech")); // it ends after a silence, and begins again
  await page.waitForFunction(() => globalThis.heardOf.length === 2);
  await page.evaluate(() => globalThis.say("The tide is coming in slowly", true));
  await page.evaluate(() => new Promise(requestAnimationFrame));
  assert.match(await state(page), /^(speaking|held)$/, "its own voice");
  await page.evaluate(() => globalThis.say("no wait", false));
  await interrupted(page);
  await page.evaluate(() => globalThis.say("no wait, stop", true));
  await page.waitForFunction(() => document.querySelectorAll("#chat-log li").length === 4);
  assert.deepEqual(asked.flatMap((messages) => messages.at(-1).content), ["hello there", "no wait, stop"]);
  await page.evaluate(() => globalThis.fail("network"));
  await trouble(page, "it needs the internet");
  assert.equal(await page.isChecked("#ears"), false);
  assert.deepEqual(page.errors, []);
});

for (const box of ["mic", "ears"]) {
  test(`a microphone that is unplugged takes the mark from #${box}, and is told`, { skip }, async (t) => {
    const before = (page) =>
      page.addInitScript(() => {
        const { mediaDevices } = navigator;
        const ask = mediaDevices.getUserMedia.bind(mediaDevices);
        mediaDevices.getUserMedia = async (what) => (globalThis.stream = await ask(what));
      });
    const { page } = await chat(t, LONG, {
      before: (page) => Promise.all([before(page), page.addInitScript(recognition)]),
    });
    await page.check(`#${box}`);
    await page.waitForFunction((box) => globalThis.stream && (box === "mic" || heardOf.length), box);
    await page.evaluate(() => stream.getTracks()[0].dispatchEvent(new Event("ended")));
    await trouble(page, "The microphone is gone.");
    assert.equal(await page.isChecked(`#${box}`), false);
    assert.equal(await page.evaluate(() => stream.active), false, "it is closed");
  });
}

test("without the chat example its tab says how to start it", { skip }, async (t) => {
  const url = await server();
  const page = await visit(t, url, { hash: "#chat" });
  await met(page);
  assert.ok(await page.isVisible("#chat-absent"));
  assert.ok((await page.textContent("#chat-command")).includes(`--tts ${url}`));
  assert.deepEqual(page.errors, []);
});
