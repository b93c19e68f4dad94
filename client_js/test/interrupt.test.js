import assert from "node:assert/strict";
import { test } from "node:test";

import {
  READY,
  collect,
  connect,
  done,
  failed,
  interrupted,
  settle,
  started,
  warning,
} from "./fake-socket.js";

test("after an interrupt not one packet comes out, and the report says what was heard", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("Good morning.");
  socket.say(started("turn-1"));
  socket.sayAudio(3840, 1);
  socket.take();
  const reporting = turn.interrupt({ playedSamples: 960 });
  socket.sayAudio(4096, 2);
  assert.deepEqual(socket.take(), [{ type: "interrupt", turn_id: "turn-1", played_samples: 960 }]);
  assert.deepEqual(await collect(turn), []);
  turn.send("more");
  turn.end();
  turn.played({ playedMs: 1 });
  assert.deepEqual(socket.take(), [], "nothing more is said about it");
  socket.say(interrupted("turn-1", "Good ", "morning."), done("turn-1", "interrupted", 1920));
  assert.deepEqual(await reporting, {
    turnId: "turn-1",
    samplesSent: 1920,
    playedMs: 80,
    textSpoken: "Good ",
    textRemaining: "morning.",
  });
  assert.equal(await turn.interrupt(), await reporting, "asked twice, sent once");
  assert.deepEqual(socket.sent, []);
  assert.equal((await turn.done).reason, "interrupted");
});

test("an interrupted turn is no error, even if some of its text was refused", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("a");
  socket.say(failed("turn_too_long", { turn_id: "turn-1" }));
  const reporting = turn.interrupt();
  socket.say(interrupted("turn-1"), done("turn-1", "interrupted"));
  await reporting;
  assert.deepEqual(await collect(turn), []);
  assert.equal((await turn.done).reason, "interrupted");
});

test("a reader that waits is told at once", async (t) => {
  const { tts } = await connect(t);
  const turn = tts.turn();
  turn.send("a");
  const reading = collect(turn);
  await settle();
  turn.interrupt().catch(() => {});
  assert.deepEqual(await reading, []);
});

test("a turn that the server never heard of is interrupted here", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  const report = await turn.interrupt();
  assert.deepEqual([report.samplesSent, report.textSpoken, report.textRemaining], [0, "", ""]);
  assert.equal((await turn.done).reason, "interrupted");
  turn.send("a");
  assert.deepEqual(socket.sent, []);
});

test("a turn that is done can be interrupted while it is still heard", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("ab", { end: true });
  socket.say(done("turn-1", "complete", 48_000));
  const reporting = turn.interrupt({ playedMs: 80 });
  assert.equal(socket.take().at(-1).played_ms, 80);
  socket.say(interrupted("turn-1", "a", "b"));
  assert.equal((await reporting).textRemaining, "b");
  assert.equal((await turn.done).reason, "complete");
});

test("an interrupt that crosses the end of its turn on the way has its answer", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("ab", { end: true });
  const reporting = turn.interrupt({ playedMs: 80 });
  await settle();
  socket.say(done("turn-1", "complete", 48_000));
  await settle();
  socket.say(interrupted("turn-1", "a", "b"));
  await settle();
  const none = new Promise((resolve) => setTimeout(resolve, 50, null));
  assert.equal((await Promise.race([reporting, none]))?.textRemaining, "b");
  assert.equal((await turn.done).reason, "complete");
  assert.ok(tts.connected);
});

test("of a text without spaces that is lost in its midst the part with audio counts as heard", async (t) => {
  const { tts, socket } = await connect(t, { giveUpAfterMs: 0 });
  const text = "今天天气很好，我们一起去公园散步吧。".repeat(10);
  const turn = tts.turn();
  turn.send(text);
  socket.say(started("turn-1"));
  for (let i = 0; i < 40; i++) socket.sayAudio(4096); // 3.4 s
  socket.drop();
  const { textSpoken, textRemaining } = await turn.done.catch((error) => error);
  assert.equal(textSpoken + textRemaining, text);
  assert.ok(textSpoken.length > 15 && textSpoken.length < 60, `${textSpoken.length} characters`);
});

for (const answer of [
  warning("turn_already_done", "turn-1"),
  failed("unknown_turn", { turn_id: "turn-1" }),
]) {
  test(`a turn that the server has forgotten (${answer.code}) counts as heard`, async (t) => {
    const { tts, socket } = await connect(t);
    const turn = tts.turn();
    turn.send("ab", { end: true });
    socket.say(started("turn-1"));
    socket.sayAudio(4800);
    socket.say(done("turn-1", "complete", 2400));
    const reporting = turn.interrupt();
    socket.say(answer);
    const { playedMs, textSpoken, textRemaining } = await reporting;
    assert.deepEqual([playedMs, textSpoken, textRemaining], [100, "ab", ""]);
  });
}

test("text that was still waiting to be sent was not heard either", async (t) => {
  const slow = { ...READY.limits, messages_per_second: 1, message_burst: 4 };
  const { tts, socket } = await connect(t, { ready: { ...READY, limits: slow } });
  const turn = tts.turn();
  for (const character of "abcd") turn.send(character);
  assert.deepEqual(
    socket.take().map((message) => message.text),
    ["a", "b"],
  );
  const reporting = turn.interrupt();
  assert.deepEqual(socket.take(), [{ type: "interrupt", turn_id: "turn-1" }]);
  socket.say(interrupted("turn-1", "a", "b"), done("turn-1", "interrupted"));
  assert.equal((await reporting).textRemaining, "bcd");
});

test("a server that does not answer an interrupt is given up, and the client estimates", async (t) => {
  const { tts, socket } = await connect(t, { replyTimeoutMs: 50 });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const turn = tts.turn();
  turn.send("a");
  const reporting = turn.interrupt();
  for (let half = 0; half < 2; half++) t.mock.timers.tick(25);
  assert.equal((await reporting).textRemaining, "a");
  assert.equal((await turn.done).reason, "interrupted");
  assert.notEqual(socket.closedWith, null);
});

for (const [when, ...answers] of [
  ["before the answer"],
  ["between the report and the end", interrupted("turn-1", "One ", "two three four five.")],
]) {
  test(`a socket lost ${when} leaves the turn interrupted, which is no error`, async (t) => {
    const { tts, socket } = await connect(t);
    const turn = tts.turn();
    turn.send("One two three four five.");
    socket.say(started("turn-1"));
    for (let i = 0; i < 4; i++) socket.sayAudio(4000);
    const reporting = turn.interrupt({ playedMs: 300 });
    await settle();
    socket.say(...answers);
    await settle();
    socket.drop();
    const { textSpoken, textRemaining } = await reporting;
    assert.deepEqual([textSpoken, textRemaining], ["One ", "two three four five."]);
    const { reason, samples } = await turn.done;
    assert.deepEqual([reason, samples], ["interrupted", 8000]);
  });
}

test("leaving the loop early interrupts the turn", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("a", { end: true });
  socket.say(started("turn-1"));
  socket.sayAudio(2);
  socket.take();
  for await (const packet of turn) {
    assert.equal(packet.length, 2);
    break;
  }
  assert.deepEqual(socket.take(), [{ type: "interrupt", turn_id: "turn-1" }]);
});
