import assert from "node:assert/strict";
import { test } from "node:test";

import { open, serve, server, skip, stage } from "./harness.js";

const TEXT = "The tide is coming in, slowly but surely, and the boats are all afloat.";

test("a player that is closed plays nothing more, and says so", { skip }, async (t) => {
  const page = await stage(t, await server());
  const found = await page.evaluate(async () => {
    const { Player } = await import("/client/player.js");
    const other = new Player({ context: player.context });
    await player.close();
    await player.close();
    await other.close(); // of a context that is closed
    const turn = tts.speak("Never heard.");
    const late = await player.play(turn).done.catch((error) => `${error}`);
    return [late, (await turn.done).reason, player.context.state];
  });
  assert.deepEqual(found, ["ClientError: the player is closed", "interrupted", "closed"]);
});

test("the first click unlocks the sound; before it nothing is played", { skip }, async (t) => {
  const url = await server();
  // All by the page itself, until the click: what a test evaluates counts as a gesture.
  const page = await open(
    t,
    url,
    `<button>Anything</button>
    <script type="module">
      import { RealtimeTTS } from "/client/index.js";
      import { Player } from "/client/player.js";
      const tts = await RealtimeTTS.connect(location.origin);
      const player = new Player();
      const playback = player.play(tts.speak("One two three."));
      playback.done.then(({ samples }) => (globalThis.samples = samples));
      Object.assign(globalThis, { player, playback });
      const say = () => {
        const { leadSeconds } = playback.stats();
        if (leadSeconds < 0.3) return;
        clearInterval(looking);
        setTimeout(() => console.log("locked", player.context.state, playback.stats().playedSeconds), 500);
      };
      const looking = setInterval(say, 20);
    </script>`,
  );
  const locked = () => page.logged.find((line) => line.startsWith("locked"));
  for (let i = 0; i < 600 && !locked(); i++) await new Promise((done) => setTimeout(done, 100));
  assert.equal(locked(), "locked suspended 0");
  await page.click("button");
  await page.waitForFunction(() => globalThis.samples > 0);
  const [now, seconds] = await page.evaluate(() => [
    player.context.state,
    playback.stats().playedSeconds,
  ]);
  assert.equal(now, "running");
  assert.equal(Math.round(seconds * 24_000), await page.evaluate(() => globalThis.samples));
  assert.deepEqual(page.errors, []);
});

test(
  "after an interruption by the system it goes on when the page is seen",
  { skip },
  async (t) => {
    const url = await server();
    const page = await stage(t, url);
    const resumed = await page.evaluate(async () => {
      const { context } = player;
      const resumed = [];
      context.resume = async () => void resumed.push(document.visibilityState);
      const show = (visible, state) => {
        Object.defineProperty(context, "state", { value: state, configurable: true });
        const value = visible ? "visible" : "hidden";
        Object.defineProperty(document, "visibilityState", { value, configurable: true });
      };
      show(false, "interrupted");
      context.dispatchEvent(new Event("statechange"));
      const whileHidden = resumed.length;
      show(true, "interrupted");
      document.dispatchEvent(new Event("visibilitychange"));
      show(true, "suspended"); // by the page: so it wants
      document.dispatchEvent(new Event("visibilitychange"));
      document.body.click();
      return [whileHidden, resumed];
    });
    assert.deepEqual(resumed, [0, ["visible"]]);
  },
);

test("a server that dies and comes back: what was not heard is known", { skip }, async (t) => {
  const first = await serve(t, "--engine", "fake");
  const page = await stage(t, first.url);
  await page.evaluate(async (text) => {
    globalThis.broken = player.play(tts.speak(text));
    await untilHeard(broken, 0.6);
  }, TEXT);
  await page.evaluate(() => {
    // The client's clock goes ten times as fast until it has given up, which takes half a minute.
    const clock = performance.now.bind(performance);
    const begun = clock();
    performance.now = () => begun + 10 * (clock() - begun);
    globalThis.slowDown = () => {
      const ahead = performance.now() - clock();
      performance.now = () => clock() + ahead;
    };
  });
  await first.kill();
  const found = await page.evaluate(async () => {
    const error = await broken.done.catch((error) => error);
    slowDown();
    const { playedSeconds, leadSeconds } = broken.stats();
    const { name, textSpoken, textRemaining } = error;
    globalThis.next = player.play(tts.speak("One two three."));
    return { name, textSpoken, textRemaining, playedSeconds, leadSeconds };
  });
  assert.equal(found.name, "ConnectionLost");
  assert.equal(found.textSpoken + found.textRemaining, TEXT);
  assert.ok(found.textRemaining.length > 0 && found.textSpoken.length > 0);
  assert.deepEqual([found.leadSeconds, found.playedSeconds > 0.5], [0, true]);
  const port = new URL(first.url).port;
  await serve(t, "--engine", "fake", "--port", port);
  const [reason, turnId] = await page.evaluate(async () => {
    const { reason, turnId } = await next.done;
    return [reason, turnId];
  });
  assert.deepEqual([reason, turnId], ["complete", "turn-2"]);
});

test("the demo voice speaks, and it is not silence", { skip }, async (t) => {
  const { url } = await serve(t, "--slots", "2"); // soon warm
  const page = await stage(t, url);
  const found = await page.evaluate(async () => {
    const playback = player.play(tts.speak("Good morning."));
    const { samples } = await playback.done;
    return { samples, ...playback.stats(), ...(await ear()) };
  });
  assert.equal(Math.round(found.playedSeconds * 24_000), found.samples);
  assert.ok(found.samples > 12_000 && found.loudest > 0.05, `${found.samples}, ${found.loudest}`);
});

test("what was heard never goes back where speech waits for its text", { skip }, async (t) => {
  const page = await stage(t, await server());
  const found = await page.evaluate(async () => {
    const turn = tts.turn();
    turn.send("One two three. ");
    const playback = player.play(turn);
    const heard = [];
    const look = async (until) => {
      while (!until(playback.stats())) {
        heard.push(playback.stats().heardSeconds);
        await sleep(5);
      }
    };
    await look(({ state }) => state === "playing");
    await look(({ state }) => state === "waiting");
    const waits = performance.now();
    await look(() => performance.now() > waits + 400); // several reports of the audio thread
    turn.send("Four five six.", { end: true });
    await look(({ state }) => state === "done");
    await sleep(500);
    const { heardSeconds, playedSeconds } = playback.stats();
    const { outputLatency, baseLatency } = player.context;
    return { heard, heardSeconds, playedSeconds, latency: outputLatency + baseLatency };
  });
  assert.ok(found.latency > 0, "this device is never late");
  const back = found.heard.filter((seconds, i) => seconds < (found.heard[i - 1] ?? 0));
  assert.deepEqual(back, []);
  assert.equal(found.heardSeconds, found.playedSeconds);
});
