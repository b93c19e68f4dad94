// The demo page over https and wss, as anybody but its own machine has to have it.
import assert from "node:assert/strict";
import { test } from "node:test";

import { serve, skip } from "./harness.js";
import { figure, met, until, visit, words } from "./page-visit.js";

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
