// The demo page when something goes wrong: it says so in words.
import assert from "node:assert/strict";
import { test } from "node:test";

import { serve, server, skip } from "./harness.js";
import {
  LONG,
  endless,
  interrupted,
  met,
  refusing,
  stream,
  trouble,
  until,
  visit,
  words,
} from "./page-visit.js";

const KEY = "correct-horse-battery";

test("a server that is gone is missed, with what was not heard, until it is back", { skip }, async (t) => {
  const { url, kill } = await serve(t, "--engine", "fake");
  const page = await visit(t, url);
  await met(page);
  await stream(page, LONG);
  await page.waitForFunction(() => document.querySelector("#transcript .heard"));
  kill();
  await trouble(page, "does not answer");
  assert.ok(LONG.startsWith(await words(page, "heard")));
  assert.ok((await words(page, "missed")).length > 0);

  await page.evaluate(() => (document.querySelector("#options").open = true));
  await page.selectOption("#voice", "bass");
  await serve(t, "--engine", "fake", "--port", new URL(url).port);
  await until(page, "idle");
  assert.match(await page.textContent("#state"), /^Ready/);
  assert.equal(await page.inputValue("#voice"), "bass");
  await stream(page, "One two.");
  await until(page, "done");
});

test("speech goes on when its server is back", { skip }, async (t) => {
  const { url, kill } = await serve(t, "--engine", "fake");
  const page = await visit(t, url);
  await met(page);
  await stream(page, "One two three four five six.");
  await page.waitForFunction(() => document.querySelector("#transcript .heard"));
  kill();
  await serve(t, "--engine", "fake", "--port", new URL(url).port);
  await until(page, "done");
  assert.equal(await words(page, "heard"), "One two three four five six.");
});

test("a lost connection is told when the sound ends, and so is its end", { skip }, async (t) => {
  let first = null;
  let again = null;
  const before = (page) =>
    page.routeWebSocket(/\/v1\/tts/, (socket) => {
      if (first) return (again = socket);
      first = socket;
      socket.connectToServer();
    });
  const page = await visit(t, await server(), { before });
  await met(page);
  await stream(page, LONG);
  await first.close({ code: 1001 });
  await until(page, "lost");
  assert.match(await page.textContent("#state"), /connecting again/);
  const error = { type: "error", code: "not_ready", message: "the engine is loading", fatal: true };
  again.send(JSON.stringify({ ...error, retryable: true, retry_after_ms: 60_000 }));
  await again.close({ code: 1013 });
  await trouble(page, "The connection was lost; what was not heard is not spoken again.");
});

test("a server that wants a key is given one", { skip }, async (t) => {
  const { url } = await serve(t, "--engine", "fake", "--api-key", KEY);
  const page = await visit(t, url);
  await page.waitForSelector("#key-form:not([hidden])");
  assert.equal(await page.evaluate(() => document.activeElement.id), "key");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await trouble(page, "does not know this API key");
  await page.fill("#key", `“${KEY}”`);
  await page.keyboard.press("Enter");
  await trouble(page, "This cannot be a key of the server");
  await page.reload(); // the tab remembers it
  await trouble(page, "This cannot be a key of the server");
  await page.fill("#key", KEY);
  await page.keyboard.press("Enter");
  await met(page);
  assert.ok(await page.isHidden("#key-form"));
  await stream(page, "One two.");
  await until(page, "done");
});

test("where the browser keeps nothing for pages, the page speaks all the same", { skip }, async (t) => {
  const refused = () =>
    Object.defineProperty(window, "sessionStorage", {
      get() {
        throw new DOMException("Access is denied", "SecurityError");
      },
    });
  const page = await visit(t, await server(), { before: (page) => page.addInitScript(refused) });
  await met(page);
  await stream(page, "One two.");
  await until(page, "done");
  assert.deepEqual(page.errors, []);
});

test("a full server says when it is tried again, and what was typed is spoken then", { skip }, async (t) => {
  const url = await server();
  let full = true;
  const page = await visit(t, url, {
    hash: "#type",
    before: async (page) => {
      await page.addInitScript(endless);
      await refusing(page, () => full, 3000, "all sessions are taken (1); try again later");
    },
  });
  await met(page);
  await page.click("#typed");
  await page.keyboard.type("What I have typed stays. And so does this");
  await trouble(page, "The server is full: all sessions are taken (1). Trying again in 2 s."); // it counts
  const read = await page.locator("#state").ariaSnapshot();
  assert.match(read, /Trying again"?$/, "the seconds are not read aloud one by one");
  await page.keyboard.type(" word. ");
  assert.equal(await page.inputValue("#typed"), "What I have typed stays. And so does this word. ");
  await trouble(page, "Trying again in 1 s.");
  full = false;
  await page.waitForFunction(() => document.querySelector("#transcript .heard"));
  assert.equal(await page.textContent("#transcript"), "What I have typed stays. And so does this word. ");
  await page.keyboard.press("Escape");
  await interrupted(page);
});

test("of several voices those that a full server refused are spoken later", { skip }, async (t) => {
  const url = await server();
  let room = 1;
  const page = await visit(t, url, {
    hash: "#several",
    before: (page) => refusing(page, () => room-- <= 0, 2000),
  });
  await met(page);
  await page.click("#play");
  await trouble(page, "Trying again");
  const says = () => page.$$eval("#several .says", (rows) => rows.map((row) => row.textContent));
  assert.match((await says()).slice(1).join(), /refused/);
  room = Infinity;
  await page.waitForFunction(() =>
    [...document.querySelectorAll("#several .says")].every((row) => row.textContent.includes("TTFA")),
  );
  await page.keyboard.press("Escape");
});
