// The loudspeaker's device fails while somebody listens.
import assert from "node:assert/strict";
import { test } from "node:test";

import { server, skip, stage } from "./harness.js";

test("speech goes on after the device failed", { skip, timeout: 60_000 }, async (t) => {
  const page = await stage(t, await server());
  const found = await page.evaluate(async () => {
    const { context } = player;
    const playback = player.play(tts.speak("One two three."));
    await untilHeard(playback, 0.2);
    // As browsers do: they tell of it, and suspend the context, which the page is to resume.
    context.dispatchEvent(new Event("error"));
    await context.suspend();
    const { playedSeconds } = playback.stats();
    const { samples } = await playback.done;
    await context.suspend(); // by the page: so it wants
    document.body.click();
    await sleep(50);
    return [playedSeconds * 24_000 < samples, playback.stats().playedSeconds * 24_000 === samples, context.state];
  });
  assert.deepEqual(found, [true, true, "suspended"]);
});
