// The demo page at another machine than the server's: over https and wss, and over plain http.
import assert from "node:assert/strict";
import { test } from "node:test";

import { serve, skip } from "./harness.js";
import { figure, interrupted, met, more, stream, until, visit, words } from "./page-visit.js";

test("the demo page speaks over https", { skip }, async (t) => {
  const { url } = await serve(t, "--engine", "fake", "--tls-self-signed");
  const page = await visit(t, url);
  assert.match(page.url(), /^https:/);
  const sockets = [];
  page.on("websocket", (socket) => sockets.push(socket.url()));
  await page.reload();
  await met(page);
  await page.click("#tab-type");
  await page.click("#typed");
  await page.keyboard.type("One two three");
  await page.keyboard.press("Enter");
  await until(page, "done");
  assert.equal(await words(page, "heard"), "One two three");
  assert.ok((await figure(page, "packets")) > 0);
  assert.ok(sockets.length > 0 && sockets.every((socket) => socket.startsWith("wss:")), sockets);
  assert.deepEqual(page.errors, []);
});

test("the demo page speaks over plain http, and says what it lacks", { skip }, async (t) => {
  const { url } = await serve(t, "--engine", "fake", "--host", "0.0.0.0");
  const page = await visit(t, url.replace("127.0.0.1", "elsewhere.test"));
  assert.equal(await page.evaluate(() => isSecureContext || "audioWorklet" in AudioContext.prototype), false);
  await met(page);
  assert.match(await page.textContent("#insecure"), /--tls-self-signed/);
  assert.ok(await page.isVisible("#insecure"));
  await stream(page, "One two three.");
  await until(page, "done");
  assert.equal(await words(page, "heard"), "One two three.");
  await stream(page, "The tide is coming in, slowly but surely, and all the boats are afloat again. ".repeat(6));
  await page.waitForFunction(() => document.querySelector("#transcript .heard")?.textContent.length > 4);
  await page.keyboard.press("Escape");
  await interrupted(page);
  assert.ok((await words(page, "missed")).length > 10);
  await more(page, "code");
  await page.click("#copy");
  await page.waitForFunction(() => /does not let this page copy/.test(document.querySelector("#state").textContent));
  assert.deepEqual(page.errors, []);
});
