import { readFileSync } from "node:fs";
import { after } from "node:test";

import { CHROMIUMS, FLAGS, chromium } from "./chromium.js";
import { skip as noServer } from "./server.js";

export { serve, server } from "./server.js";

/** Why these tests cannot run here; false if they can. */
export const skip = chromium
  ? noServer
  : `no Chromium: looked at ${CHROMIUMS.join(", ")}; install it or set CHROMIUM`;

let launched;

/** The browser of all files' tests, if together.js has started one; else that of this file's. */
function browser() {
  const shared = process.env.REALTIME_TTS_TEST_BROWSER;
  launched ??= import("playwright-core").then(({ chromium: launcher }) =>
    shared ? launcher.connect(shared) : launcher.launch({ executablePath: chromium, args: FLAGS }),
  );
  return launched;
}

after(async () => (await launched)?.close());

/**
 * An empty page of that server, or one with `body`, until the test is over; with a profile of its
 * own, so that it knows nothing of other tests.
 */
export async function open(t, url, body = "<body>", path = "/blank") {
  const profile = { ignoreHTTPSErrors: true }; // the servers sign their own certificates
  const page = await (await browser()).newPage(profile);
  t.after(() => page.context().close());
  page.setDefaultTimeout(60_000); // long enough for a machine that is busy with other things
  const errors = [];
  const logged = [];
  page.on("pageerror", (error) => errors.push(error));
  page.on("console", (message) => logged.push(message.text()));
  const html = `<!doctype html>${body}`;
  await page.route(url + path, (route) => route.fulfill({ contentType: "text/html", body: html }));
  await page.goto(url + path);
  return Object.assign(page, { errors, logged });
}

/**
 * A page with a session, a player and an ear behind the player's loudspeaker. `scheduled`: the player
 * finds no AudioWorklet, as over plain http.
 */
export async function stage(t, url, { settings = {}, rate, scheduled = false } = {}) {
  const page = await open(t, url);
  await page.addScriptTag({ content: readFileSync(new URL("ear.js", import.meta.url), "utf8") });
  await page.evaluate(
    async ([settings, rate, scheduled]) => {
      const { RealtimeTTS } = await import("/client/index.js");
      const { Player } = await import("/client/player.js");
      const context = rate && new AudioContext({ sampleRate: rate });
      const player = new Player({ context });
      const tts = await RealtimeTTS.connect(location.origin, {
        ...settings,
        WebSocket: globalThis.StallingSocket,
      });
      if (scheduled) Object.defineProperty(player.context, "audioWorklet", { value: undefined, configurable: true });
      await player.unlock();
      delete player.context.audioWorklet; // the ear needs one
      const ear = await globalThis.listenTo(player);
      Object.assign(globalThis, { player, tts, ear });
      globalThis.sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      globalThis.untilHeard = async (playback, seconds) => {
        for (let ms = 0; playback.stats().playedSeconds < seconds && ms < 60_000; ms += 20) await sleep(20);
      };
    },
    [settings, rate, scheduled],
  );
  return page;
}
