// The client in pages of others: under their policies, and with what they do to the player.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { open, serve, server, skip } from "./harness.js";

/** A page of another origin, whose policy is a header, and which may speak there by `directives`. */
async function embedded(t, directives) {
  const policies = { "content-type": "text/html" };
  const pages = createServer((_, answer) => answer.writeHead(200, policies).end("<!doctype html><body>"));
  t.after(() => pages.close());
  await once(pages.listen(0, "127.0.0.1"), "listening");
  const origin = `http://127.0.0.1:${pages.address().port}`;
  const { url } = await serve(t, "--engine", "fake", "--allow-origin", origin);
  policies["content-security-policy"] = directives(url, url.replace("http", "ws"));
  const page = await open(t, origin);
  await page.unrouteAll(); // the page comes with its policy
  await page.goto(origin);
  return { page, url };
}

test("a page that may not connect to the server is told at once", { skip, timeout: 60_000 }, async (t) => {
  const policy = (url) => `script-src ${url} blob: 'unsafe-eval'; connect-src 'self'`;
  const { page, url } = await embedded(t, policy);
  const [name, code, message] = await page.evaluate(async (url) => {
    const { RealtimeTTS, HandshakeRefused } = await import(`${url}/client/index.js`);
    // Later than this test waits for: the browser has said no long before.
    const connecting = RealtimeTTS.connect(url, { connectTimeoutMs: 600_000 });
    const error = await connecting.catch((error) => error);
    return [error instanceof HandshakeRefused && error.name, error.code, error.message];
  }, url);
  assert.deepEqual([name, code], ["HandshakeRefused", "handshake_refused"]);
  assert.match(message, /no session at ws:/);
});

const POLICIES = {
  "the worklet from a blob:": (url, ws) => `script-src ${url} blob: 'unsafe-eval'; connect-src ${ws}`,
  "the worklet from its file": (url, ws) => `script-src ${url} 'unsafe-eval'; connect-src ${ws}`,
};
for (const [name, policy] of Object.entries(POLICIES)) {
  test(`a page of another origin with a strict policy speaks, ${name}`, { skip }, async (t) => {
    const { page, url } = await embedded(t, (url, ws) => `default-src 'none'; ${policy(url, ws)}`);
    const file = name.endsWith("file") ? `${url}/client/player-worklet.js` : undefined;
    const [samples, played] = await page.evaluate(
      async ([url, workletUrl]) => {
        const { RealtimeTTS } = await import(`${url}/client/index.js`);
        const { Player } = await import(`${url}/client/player.js`);
        const tts = await RealtimeTTS.connect(url);
        const playback = new Player({ workletUrl }).play(tts.speak("One two three."));
        const { samples } = await playback.done;
        return [samples, Math.round(playback.stats().playedSeconds * 24_000)];
      },
      [url, file],
    );
    assert.ok(samples > 0);
    assert.equal(played, samples);
  });
}

for (const scheduled of [false, true]) {
  const how = scheduled ? ", without a worklet, too" : "";
  test(`a context that the page closes ends all that its players play${how}`, { skip, timeout: 60_000 }, async (t) => {
    const page = await open(t, await server());
    const found = await page.evaluate(async (scheduled) => {
      const { RealtimeTTS } = await import("/client/index.js");
      const { Player } = await import("/client/player.js");
      const context = new AudioContext();
      if (scheduled) Object.defineProperty(context, "audioWorklet", { value: undefined });
      const [one, other] = [new Player({ context }), new Player({ context })];
      const sessions = await Promise.all([0, 1].map(() => RealtimeTTS.connect(location.origin)));
      const text = "The tide is coming in, slowly but surely, and the boats are all afloat. ".repeat(3);
      const playbacks = [one, other].map((player, i) => player.play(sessions[i].speak(text)));
      for (const playback of playbacks) {
        while (playback.stats().playedSeconds < 0.2) await new Promise((resolve) => setTimeout(resolve, 20));
      }
      await one.close();
      const reasons = await Promise.all(playbacks.map(async ({ done }) => (await done).reason));
      const late = [other, new Player({ context })].map((player) => player.play(sessions[1].speak("Never heard.")));
      const errors = await Promise.all(late.map(({ done }) => done.catch((error) => `${error}`)));
      return [reasons, errors, await other.bargeIn()];
    }, scheduled);
    const closed = "ClientError: the player is closed";
    assert.deepEqual(found, [["interrupted", "interrupted"], [closed, closed], null]);
  });
}
