import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { test } from "node:test";

import { install } from "../installed.js";
import { open, server, skip } from "./harness.js";

const APP = `
  import { RealtimeTTS } from "realtime-tts";
  import { Player } from "realtime-tts/player";
  globalThis.app = { RealtimeTTS, Player };`;

/** Production builds, as each bundler does them unasked. They read app.js and write to out. */
const BUNDLERS = {
  async "Vite 8"({ folder, out }) {
    const { build } = await import("vite");
    writeFileSync(join(folder, "index.html"), '<script type="module" src="/app.js"></script>');
    const options = { outDir: out, assetsDir: "" };
    await build({ root: folder, logLevel: "error", configFile: false, build: options });
  },
  async "esbuild, as a module"({ app, out }) {
    const { build } = await import("esbuild");
    const outfile = join(out, "app.js");
    await build({ entryPoints: [app], bundle: true, minify: true, format: "esm", outfile });
  },
  async "esbuild, as a script for browsers of 2020"({ app, out }) {
    const { build } = await import("esbuild");
    const options = { minify: true, format: "iife", target: "es2020" };
    await build({ entryPoints: [app], bundle: true, outfile: join(out, "app.js"), ...options });
  },
  async "esbuild that keeps names, with the worklet from a file"({ app, out }) {
    const { build } = await import("esbuild");
    const options = { bundle: true, keepNames: true, format: "esm" };
    await build({ entryPoints: [app], outfile: join(out, "app.js"), ...options });
  },
  async webpack({ folder, app, out }) {
    const { default: webpack } = await import("webpack");
    const output = { path: out, filename: "app.js" };
    const compiler = webpack({ mode: "production", context: folder, entry: app, output });
    await new Promise((resolve, reject) => {
      compiler.run((error, stats) => {
        if (error || stats.hasErrors()) reject(error ?? new Error(stats.toString()));
        else compiler.close(resolve);
      });
    });
  },
  async Rollup({ app, out }) {
    const { rollup } = await import("rollup");
    const { nodeResolve } = await import("@rollup/plugin-node-resolve");
    const bundle = await rollup({ input: app, plugins: [nodeResolve({ browser: true })] });
    await bundle.write({ dir: out, format: "es" });
  },
};

for (const [name, build] of Object.entries(BUNDLERS)) {
  test(`speech is heard from a build of ${name}`, { skip }, async (t) => {
    const { folder } = install(t);
    const app = join(folder, "app.js");
    const out = join(folder, "out");
    writeFileSync(app, APP);
    await build({ folder, app, out });
    const url = await server();
    const page = await open(t, url);
    // Nothing but what the bundler wrote can be had.
    await page.route(`${url}/built/*`, (route) => {
      const file = readdirSync(out).find((each) => route.request().url().endsWith(`/${each}`));
      if (!file) return route.fulfill({ status: 404 });
      return route.fulfill({ contentType: "text/javascript", body: readFileSync(join(out, file)) });
    });
    const scripts = readdirSync(out).filter((file) => extname(file) === ".js");
    assert.equal(scripts.length, 1, `one script is expected, found ${scripts}`);
    const script = { url: `${url}/built/${scripts[0]}` };
    await page.addScriptTag(name.includes("as a script") ? script : { ...script, type: "module" });
    const options = name.includes("from a file") ? { workletUrl: "/client/player-worklet.js" } : {};
    const found = await page.evaluate(async (options) => {
      const tts = await app.RealtimeTTS.connect(location.origin);
      const player = new app.Player(options);
      const playback = player.play(tts.speak("One two three."));
      const { samples, reason } = await playback.done;
      return { samples, reason, played: playback.stats().playedSeconds };
    }, options);
    assert.equal(found.reason, "complete");
    assert.ok(found.samples > 0);
    assert.equal(Math.round(found.played * 24_000), found.samples);
  });
}

const TUTORIAL = readFileSync(
  new URL("../../../docs/tutorials/browser.md", import.meta.url),
  "utf8",
);

test("the tutorial's page, built as it says, speaks and says what was heard", { skip }, async (t) => {
  const { folder } = install(t);
  const out = join(folder, "dist");
  const url = await server();
  const [, html] = TUTORIAL.match(/^```html\n(.*?)^```/ms);
  const [, script] = TUTORIAL.match(/^```js\n(.*?)^```/ms);
  writeFileSync(join(folder, "index.html"), html);
  writeFileSync(join(folder, "main.js"), script.replace("http://127.0.0.1:8000", url));
  const { build } = await import("vite");
  await build({ root: folder, base: "/talk/", logLevel: "error", configFile: false });
  const page = await open(t, url);
  const types = { ".html": "text/html", ".js": "text/javascript" };
  await page.route(`${url}/talk/**`, (route) => {
    const file = join(out, new URL(route.request().url()).pathname.replace("/talk/", ""));
    route.fulfill({ contentType: types[extname(file)], body: readFileSync(file) });
  });
  await page.goto(`${url}/talk/index.html`);
  await page.waitForFunction(() => document.getElementById("stop").onclick);
  await page.fill("#text", "The tide is coming in. ".repeat(30)); // not over before Stop is pressed
  await page.click("#play");
  await page.click("#stop");
  await page.waitForFunction(() => document.getElementById("heard").textContent);
  assert.match(await page.textContent("#heard"), /^You heard: /);
  assert.deepEqual(page.errors, []);
});
