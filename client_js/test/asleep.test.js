// The page or its machine sleeps: when it wakes, all timers are late at once.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FakeSocket, READY, accept, connect, done, nextSocket, settle, timed } from "./fake-socket.js";

test("a page that was frozen reads the answer that came meanwhile before it gives up", async (t) => {
  const { tts, socket } = await connect(t);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const changed = tts.configure({ voice: "ben" });
  t.mock.timers.tick(60_000); // all that is late is due at once
  socket.say(READY);
  await changed;
  assert.equal(tts.connected, true);
});

for (const [when, begun] of [
  ["between two tries", false],
  ["in the middle of one", true],
]) {
  test(`a machine that slept ${when} goes on trying when it wakes`, async (t) => {
    const { tts, socket } = await timed(t);
    socket.drop();
    const turn = tts.speak("a");
    if (begun) await nextSocket(t, 300);
    t.mock.timers.tick(600_000); // longer than it tries
    await settle();
    FakeSocket.last.fail("the network is not back yet");
    const next = await nextSocket(t, 1000);
    await accept(next);
    next.say(done(turn.turnId));
    assert.equal((await turn.done).reason, "complete");
  });
}
