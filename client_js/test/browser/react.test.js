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
  import { StrictMode, createElement as h, useState } from "react";
  import { createRoot } from "react-dom/client";
  import { useSpeech } from "realtime-tts/react";

  function Speech({ voice, server }) {
    const { state, error, interrupted, speak, interrupt } = useSpeech(server, { voice });
    globalThis.seen = [...(globalThis.seen ?? []), state];
    return h("section", null,
      h("p", { id: "state" }, state),
      h("p", { id: "heard" }, interrupted?.textSpoken ?? ""),
      h("p", { id: "error" }, error?.message ?? ""),
      h("button", { id: "speak", onClick: async () => (globalThis.result = await speak(globalThis.text)) }, "Speak"),
      h("button", { id: "interrupt", onClick: interrupt }, "Interrupt"));
  }

  function App() {
    const [props, show] = useState({ voice: "alto", server: location.origin });
    globalThis.show = show;
    return props && h(Speech, props);
  }
  createRoot(document.querySelector("main")).render(h(StrictMode, null, h(App)));`;

test("a component speaks, is interrupted, and leaves nothing behind", { skip }, async (t) => {
  const { folder } = install(t);
  const { build } = await import("esbuild");
  const [app, outfile] = [join(folder, "app.js"), join(folder, "out.js")];
  writeFileSync(app, APP);
  const options = { bundle: true, format: "esm", nodePaths: [PACKAGES] };
  await build({ entryPoints: [app], outfile, define: { "process.env.NODE_ENV": '"development"' }, ...options });
  const { url, kill } = await serve(t, "--engine", "fake");
  const page = await open(t, url, "<body><main></main>");
  const sockets = [];
  page.on("websocket", (socket) => sockets.push(socket));
  await page.addScriptTag({ content: readFileSync(outfile, "utf8"), type: "module" });
  const state = (wanted) =>
    page.waitForFunction((wanted) => document.querySelector("#state")?.textContent === wanted, wanted);

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
    assert.ok(waited < 5000, "a socket is still open");
    await page.waitForTimeout(50);
  }
  assert.deepEqual(page.errors, []);

  await kill();
  await page.evaluate(() => globalThis.show({ voice: "alto", server: location.origin }));
  await page.click("#speak");
  await page.waitForFunction(() => document.querySelector("#error").textContent);
  assert.equal(await page.textContent("#state"), "idle");
});
