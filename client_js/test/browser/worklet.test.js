import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import { open, server, skip, stage } from "./harness.js";

test("where a page allows no blob:, the worklet comes from its own file", { skip }, async (t) => {
  const url = await server();
  const policy = "script-src 'self' 'unsafe-eval'; worker-src 'self'";
  const page = await open(
    t,
    url,
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
  );
  const found = await page.evaluate(async () => {
    const { RealtimeTTS } = await import("/client/index.js");
    const { Player } = await import("/client/player.js");
    const tts = await RealtimeTTS.connect(location.origin);
    const speak = async (player) => {
      const playback = player.play(tts.speak("One two three."));
      const { samples } = await playback.done;
      return samples === Math.round(playback.stats().playedSeconds * 24_000);
    };
    const carried = await speak(new Player()).catch(() => "refused");
    const early = new Player();
    early.play(tts.speak("One two three."));
    const { textSpoken } = await early.bargeIn(); // before it is known that nothing can be played
    await early.close();
    return [carried, textSpoken, await speak(new Player({ workletUrl: "/client/player-worklet.js" }))];
  });
  assert.deepEqual(found, ["refused", "", true]);
});

test("the worklet's blob: address is revoked once it is loaded, or was not", { skip }, async (t) => {
  const page = await open(t, await server());
  const found = await page.evaluate(async () => {
    const { Player } = await import("/client/player.js");
    const made = [];
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => made.push(create(blob)) && made.at(-1);
    await new Player().unlock();
    await new Player({ workletUrl: "/nowhere.js" }).unlock().catch(() => {});
    const left = made.map((url) => fetch(url).then(() => url, () => null));
    return [made.length > 0, await Promise.all(left)];
  });
  assert.deepEqual([found[0], found[1].filter(Boolean)], [true, []]);
});

test("a worklet that could not be loaded is loaded for the next turn", { skip, timeout: 60_000 }, async (t) => {
  const page = await open(t, await server());
  const source = readFileSync(new URL("../../src/player-worklet.js", import.meta.url));
  const headers = { "Access-Control-Allow-Origin": "*", "Content-Type": "text/javascript" };
  let asked = 0;
  const files = createServer((_, answer) => answer.writeHead(asked++ ? 200 : 503, headers).end(source));
  t.after(() => files.close());
  await once(files.listen(0, "127.0.0.1"), "listening");
  const found = await page.evaluate(async (workletUrl) => {
    const { RealtimeTTS } = await import("/client/index.js");
    const { Player } = await import("/client/player.js");
    const tts = await RealtimeTTS.connect(location.origin);
    const player = new Player({ workletUrl });
    const { analyser } = player;
    const failed = await player.play(tts.speak("Never heard.")).done.catch(({ name }) => name);
    await player.unlock();
    const next = player.play(tts.speak("One two three."));
    let loudest = 0;
    while (!loudest && next.stats().state !== "done") {
      await new Promise((resolve) => setTimeout(resolve, 20));
      const samples = new Float32Array(analyser.fftSize);
      analyser.getFloatTimeDomainData(samples);
      loudest = Math.max(...samples);
    }
    const { samples } = await next.done;
    return [failed, loudest > 0, samples === Math.round(next.stats().playedSeconds * 24_000)];
  }, `http://127.0.0.1:${files.address().port}/player-worklet.js`);
  assert.deepEqual(found, ["AbortError", true, true]);
});

test("of a turn that is interrupted while the worklet loads nothing is heard", { skip }, async (t) => {
  const page = await stage(t, await server());
  const found = await page.evaluate(async () => {
    const { Player } = await import("/client/player.js");
    const turn = tts.speak("One two three.");
    while (turn.samplesReceived < 12_000) await sleep(10);
    const other = new Player({ context: player.context });
    other.analyser.connect(player.analyser);
    const playback = other.play(turn);
    const { playedMs, textSpoken } = await other.bargeIn();
    await playback.done;
    await sleep(300);
    return [playedMs, textSpoken, (await ear()).sounding];
  });
  assert.deepEqual(found, [0, "", 0]);
});
