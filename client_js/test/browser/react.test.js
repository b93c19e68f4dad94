// The hook for React, as an app has it that esbuild made.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { install } from "../installed.js";
import { open, serve, skip } from "./harness.js";

const PACKAGES = fileURLToPath(new URL("../../node_modules", import.meta.url));
const LONG = "The tide is coming in, slowly but surely, and all the boats are afloat again. ".repeat(3);
const APP = `
  import { StrictMode, createElement as h, useEffect, useState } from "react";
  import { createRoot } from "react-dom/client";
  import { useSpeech } from "realtime-tts/react";

  function Speech({ voice, server, round }) {
    const onConnected = (is) => (globalThis.connections = [...(globalThis.connections ?? []), [round, is]]);
    const apiKey = async () => void (globalThis.keyOf = round);
    const options = { voice, onConnected, apiKey };
    const { state, error, interrupted, speak, interrupt } = useSpeech(server, options);
    globalThis.seen = [...(globalThis.seen ?? []), state];
    useEffect(() => void (globalThis.mounted = true), []);
    return h("section", null,
      h("p", { id: "state" }, state),
      h("p", { id: "heard" }, interrupted?.textSpoken ?? ""),
      h("p", { id: "error" }, error?.message ?? ""),
      h("button", { id: "speak", onClick: async () => {
        globalThis.result = await speak(globalThis.text);
        globalThis.reasons = [...(globalThis.reasons ?? []), globalThis.result?.reason];
      } }, "Speak"),
      h("button", { id: "interrupt", onClick: interrupt }, "Interrupt"));
  }

  function App() {
    const [props, show] = useState({ voice: "alto", server: location.origin });
    globalThis.show = show;
    return props && h(Speech, props);
  }
  createRoot(document.querySelector("main")).render(h(StrictMode, null, h(App)));`;

/** A page of that server with the app, the sockets it opens, and a function that waits for a state. */
async function openApp(t, url, { seesSocket = () => {}, before = () => {} } = {}) {
  const { folder } = install(t);
  const { build } = await import("esbuild");
  const [app, outfile] = [join(folder, "app.js"), join(folder, "out.js")];
  writeFileSync(app, APP);
  const options = { bundle: true, format: "esm", nodePaths: [PACKAGES] };
  await build({ entryPoints: [app], outfile, define: { "process.env.NODE_ENV": '"development"' }, ...options });
  const page = await open(t, url, "<body><main></main>");
  await before(page);
  const sockets = [];
  page.on("websocket", (socket) => sockets.push(socket) && seesSocket(socket));
  await page.addScriptTag({ content: readFileSync(outfile, "utf8"), type: "module" });
  const state = (wanted) =>
    page.waitForFunction((wanted) => document.querySelector("#state")?.textContent === wanted, wanted);
  return { page, sockets, state };
}

test("a component speaks, is interrupted, and leaves nothing behind", { skip }, async (t) => {
  const { url, kill } = await serve(t, "--engine", "fake");
  const { page, sockets, state } = await openApp(t, url);
  await page.evaluate(() => (globalThis.text = "One two three."));
  await page.click("#speak");
  await page.waitForFunction(() => globalThis.result);
  assert.equal(await page.evaluate(() => globalThis.result.reason), "complete");
  await state("idle");
  const seen = await page.evaluate(() => globalThis.seen);
  assert.ok(seen.indexOf("waiting") > 0 && seen.indexOf("speaking") > seen.indexOf("waiting"), `${seen}`);

  await page.evaluate((text) => (globalThis.text = text), LONG);
  await page.click("#speak");
  await state("speaking");
  await page.waitForTimeout(600);
  await page.click("#interrupt");
  await page.waitForFunction(() => document.querySelector("#heard").textContent);
  assert.ok(LONG.startsWith(await page.textContent("#heard")));
  assert.equal(await page.textContent("#state"), "idle");

  await page.evaluate(() => globalThis.show({ voice: "bass", server: location.origin }));
  await page.evaluate(() => (globalThis.text = "Again."));
  await page.click("#speak");
  await page.waitForFunction(() => globalThis.result.reason === "complete");

  await page.evaluate(() => globalThis.show(null));
  await page.waitForFunction(() => !document.querySelector("#state"));
  for (let waited = 0; sockets.some((socket) => !socket.isClosed()); waited += 50) {
    assert.ok(waited < 60_000, "a socket is still open");
    await page.waitForTimeout(50);
  }
  assert.deepEqual(page.errors, []);

  await kill();
  await page.evaluate(() => globalThis.show({ voice: "alto", server: location.origin }));
  await page.click("#speak");
  await page.waitForFunction(() => document.querySelector("#error").textContent);
  assert.equal(await page.textContent("#state"), "idle");
});

test("speech that has not begun is interrupted like any other", { skip }, async (t) => {
  const { url } = await serve(t, "--engine", "fake");
  const texts = [];
  const { page, state } = await openApp(t, url, {
    seesSocket: (socket) =>
      socket.on("framesent", ({ payload }) => texts.push(JSON.parse(payload).text)),
  });
  await page.waitForFunction(() => globalThis.mounted);

  await page.evaluate((text) => {
    const click = (id) => document.querySelector(id).click();
    globalThis.text = text;
    click("#speak"); // it waits for the session and the audio device
    globalThis.text = "Instead.";
    click("#speak");
  }, LONG);
  const reasons = async (count) => {
    await page.waitForFunction((count) => globalThis.reasons?.length === count, count);
    return page.evaluate(() => globalThis.reasons);
  };
  assert.deepEqual(await reasons(2), ["interrupted", "complete"]);
  assert.deepEqual(texts.filter(Boolean), ["Instead."]);
  await state("idle");

  await page.evaluate(() => {
    document.querySelector("#speak").click();
    document.querySelector("#interrupt").click();
  });
  assert.equal((await reasons(3)).at(-1), "interrupted");
  assert.equal(texts.filter(Boolean).length, 1);
  await state("idle");
  assert.deepEqual(page.errors, []);
});

/** Sockets that the test can end, each with what it says before. */
const breakable = (routes) => ({
  before: (page) =>
    page.routeWebSocket(/\/v1\/tts/, (route) => {
      route.connectToServer();
      routes.push(route);
    }),
});

test("the callbacks are those of the latest render, and are told of no session that was replaced", { skip }, async (t) => {
  const { url } = await serve(t, "--engine", "fake");
  const routes = [];
  const { page, state } = await openApp(t, url, breakable(routes));
  const speak = async () => {
    await page.evaluate(() => (globalThis.text = "One two three."));
    await page.click("#speak");
    await page.waitForFunction(() => globalThis.result?.reason === "complete");
    await state("idle");
    await page.evaluate(() => (globalThis.result = null));
  };
  const show = (props) => page.evaluate((props) => globalThis.show({ server: location.origin, ...props }), props);
  await page.waitForFunction(() => globalThis.mounted);
  await speak();
  await show({ voice: "bass", round: 1 });
  await speak();
  await show({ voice: "bass", round: 2 });
  assert.equal(await page.evaluate(() => globalThis.connections), undefined);
  await routes.at(-1).close({ code: 1011 });
  await page.waitForFunction(() => globalThis.connections?.length === 2);
  assert.deepEqual(await page.evaluate(() => globalThis.connections), [[2, false], [2, true]]);
  assert.equal(await page.evaluate(() => globalThis.keyOf), 2);
  assert.deepEqual(page.errors, []);
});

test("after a session that no other continues, speech makes one", { skip }, async (t) => {
  const { url } = await serve(t, "--engine", "fake");
  const routes = [];
  const { page, state } = await openApp(t, url, breakable(routes));
  await page.evaluate(() => (globalThis.text = "One two three."));
  await page.click("#speak");
  await page.waitForFunction(() => globalThis.result?.reason === "complete");
  await state("idle");
  await page.evaluate(() => (globalThis.result = null));
  const error = { type: "error", code: "unauthorized", message: "the key was rotated" };
  routes.at(-1).send(JSON.stringify({ ...error, fatal: true, retryable: false }));
  await routes.at(-1).close({ code: 4401 });
  await page.waitForFunction(() => globalThis.connections?.length);
  await page.click("#speak");
  await page.waitForFunction(() => globalThis.result?.reason === "complete");
  assert.equal(await page.textContent("#error"), "");
  assert.deepEqual(await page.evaluate(() => globalThis.connections), [[undefined, false], [undefined, true]]);
});

test("a session with other options, after one that was lost, is told as connected", { skip }, async (t) => {
  const { url } = await serve(t, "--engine", "fake");
  const routes = [];
  const { page } = await openApp(t, url, breakable(routes));
  await page.evaluate(() => (globalThis.text = "One two three."));
  await page.click("#speak");
  await page.waitForFunction(() => globalThis.result?.reason === "complete");
  await routes.at(-1).close({ code: 1008 });
  await page.waitForFunction(() => globalThis.connections?.length);
  const show = (props) => page.evaluate((props) => globalThis.show({ server: location.origin, ...props }), props);
  await show({ voice: "bass", round: 1 });
  await page.waitForFunction(() => globalThis.connections.length === 2);
  await show({ voice: "alto", round: 2 });
  await page.evaluate(() => (globalThis.result = null));
  await page.click("#speak");
  await page.waitForFunction(() => globalThis.result?.reason === "complete");
  assert.deepEqual(await page.evaluate(() => globalThis.connections), [[undefined, false], [1, true]]);
});
