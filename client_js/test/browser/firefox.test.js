// The demo page in Firefox: it connects, speaks through the player, and falls silent.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { server, skip as noServer } from "./server.js";

const FIREFOXES = [process.env.FIREFOX, "/usr/bin/firefox-esr", "/usr/bin/firefox"].filter(Boolean);
const PULSEAUDIO = "/usr/bin/pulseaudio";
const firefox = FIREFOXES.find(existsSync);
// In 6 of 33 runs, on a busy machine, the thread of Firefox that talks to PulseAudio waits for a
// lock for ever, and the page's own thread for that one. Another Firefox is started then.
const SILENT_MS = 20_000;

function missing() {
  if (!firefox) return `no Firefox: looked at ${FIREFOXES.join(", ")}; install it or set FIREFOX`;
  if (!existsSync(PULSEAUDIO)) return "no PulseAudio: without a sound card Firefox plays to nobody else";
  return noServer;
}

/** A loudspeaker that swallows everything, until the test is over; gives its address. */
async function loudspeaker(t) {
  const folder = await mkdtemp(join(tmpdir(), "tts-sound-"));
  const socket = join(folder, "native");
  const child = spawn(
    PULSEAUDIO,
    ["-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "-L", "module-null-sink"].concat([
      "-L",
      `module-native-protocol-unix socket=${socket} auth-anonymous=1`,
    ]),
    { env: { ...process.env, HOME: folder, XDG_RUNTIME_DIR: folder }, stdio: "ignore" },
  );
  t.after(async () => {
    child.kill();
    await rm(folder, { recursive: true, force: true });
  });
  while (!existsSync(socket)) {
    assert.equal(child.exitCode, null, "PulseAudio has ended");
    await wait(20);
  }
  return `unix:${socket}`;
}

/** Whether the page stops answering before it is `over`. */
async function hangs(page, over) {
  while (!over()) {
    await wait(1000);
    const answers = page.evaluate(() => true).catch(() => true); // it may be closed by now
    if (!(await Promise.race([answers, wait(SILENT_MS, false, { ref: false })]))) return true;
  }
  return false;
}

/** Plays, and interrupts. */
async function talk(page, url) {
  page.setDefaultTimeout(60_000);
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));

  const until = (what) =>
    page.waitForFunction(what).catch(async (error) => {
      const shown = await page.$eval("body", (one) => one.innerText);
      throw new Error(`${error.message}: ${what}\n${[...errors, shown].join("\n")}`);
    });

  await page.goto(url);
  await until(() => document.querySelector("#voice").options.length > 0);
  await page.locator("#play").click(); // waits until it is enabled and stands still
  await until(() => parseFloat(document.querySelector("#f-packets").textContent) > 3);
  await until(() => document.querySelector("#state").dataset.state === "speaking");
  await until(() => document.querySelectorAll("#transcript .heard").length > 0);
  await page.keyboard.press(" ");
  await until(() => /^Interrupted/.test(document.querySelector("#announce").textContent));
  const told = await page.$eval("#announce", (one) => one.textContent);
  assert.match(told, /Heard: \S+.*Not heard: \S+/s);
  assert.doesNotMatch(told, /Heard: nothing/);
  assert.deepEqual(errors, []);
}

/** Visits the page with a Firefox of its own; false if that hung. */
async function visit(url, sound) {
  const { default: puppeteer } = await import("puppeteer-core");
  const env = { ...process.env, PULSE_SERVER: sound };
  const protocolTimeout = 60_000; // the program ends no sooner than what a hanging one was asked
  const how = { browser: "firefox", executablePath: firefox, env, protocolTimeout };
  const browser = await puppeteer.launch(how);
  const page = await browser.newPage();
  let over = false;
  const talked = talk(page, url).finally(() => (over = true));
  talked.catch(() => {}); // once it hangs, nobody asks
  let hung = false;
  try {
    hung = (await Promise.race([talked, hangs(page, () => over)])) === true;
    return !hung;
  } finally {
    over = true;
    if (hung) browser.process().kill("SIGKILL");
    else await browser.close();
  }
}

test("the demo page in Firefox", { skip: missing(), timeout: 300_000 }, async (t) => {
  const [url, sound] = await Promise.all([server(), loudspeaker(t)]);
  for (let tries = 1; !(await visit(url, sound)); tries++) {
    t.diagnostic(`Firefox answered nothing for ${SILENT_MS / 1000} s`);
    assert.ok(tries < 3, "Firefox hung every time");
  }
});
