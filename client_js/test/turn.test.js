import assert from "node:assert/strict";
import { test } from "node:test";

import { ClientError, OverloadedError, TurnError } from "../src/index.js";
import { collect, connect, done, failed, settle, started, warning } from "./fake-socket.js";

test("deltas go out as they are and packets come in as they are", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("The ti");
  turn.send("");
  turn.send("de");
  turn.flush();
  turn.end();
  turn.end();
  assert.deepEqual(socket.take(), [
    { type: "text", turn_id: "turn-1", text: "The ti" },
    { type: "text", turn_id: "turn-1", text: "de" },
    { type: "flush", turn_id: "turn-1" },
    { type: "turn.end", turn_id: "turn-1" },
  ]);
  assert.equal(turn.text, "The tide");
  socket.say(started("turn-1"));
  socket.sayAudio(3840, 1);
  socket.sayAudio(4096, 2);
  assert.equal(turn.over, false);
  socket.say(done("turn-1", "complete", 3968));
  const packets = await collect(turn);
  assert.deepEqual(
    packets.map((packet) => [packet.length, packet[0]]),
    [
      [3840, 1],
      [4096, 2],
    ],
  );
  assert.ok(packets.every((packet) => packet instanceof Uint8Array));
  assert.deepEqual(await turn.done, {
    turnId: "turn-1",
    reason: "complete",
    samples: 3968,
    ttfaMs: 80,
    underruns: 0,
    heldMs: 0,
    heldInsideWord: 0,
    textChars: 1,
    moves: 0,
  });
  assert.equal(turn.samplesReceived, 3968);
  assert.equal(turn.layout, "streaming");
  assert.equal(turn.over, true);
});

test("a reader may wait before anything comes", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  const reading = collect(turn);
  turn.send("a", { end: true });
  assert.deepEqual(socket.take(), [{ type: "text", turn_id: "turn-1", text: "a", end: true }]);
  for (let fill = 1; fill <= 3; fill++) {
    await settle();
    if (fill === 1) socket.say(started("turn-1"));
    socket.sayAudio(2, fill);
  }
  await settle();
  socket.say(done("turn-1"));
  assert.deepEqual(
    (await reading).map((packet) => packet[0]),
    [1, 2, 3],
  );
});

test("audio goes to the turn on the air and to no other", async (t) => {
  const { tts, socket } = await connect(t);
  const [a, b] = [tts.turn(), tts.turn()];
  for (const turn of [a, b]) turn.send("x", { end: true });
  socket.sayAudio(2, 9);
  socket.say(started("turn-1"));
  socket.sayAudio(2, 1);
  socket.say(done("turn-1"));
  socket.sayAudio(2, 9);
  socket.say(started("turn-2"));
  socket.sayAudio(2, 2);
  socket.say(done("turn-2"));
  assert.deepEqual(
    (await collect(a)).map((packet) => packet[0]),
    [1],
  );
  assert.deepEqual(
    (await collect(b)).map((packet) => packet[0]),
    [2],
  );
});

test("a turn without text is over at once and the server never hears of it", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.end();
  assert.deepEqual(await collect(turn), []);
  assert.equal((await turn.done).reason, "complete");
  const other = tts.turn();
  other.send("", { end: true });
  assert.equal((await other.done).samples, 0);
  assert.deepEqual(socket.sent, []);
});

test("text after the end is a mistake, text after the turn is not", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("a", { end: true });
  assert.throws(() => turn.send("b"), ClientError);
  assert.throws(() => turn.send(5), ClientError);
  const other = tts.turn();
  other.send("a");
  socket.say(done("turn-2", "guard_silence"));
  socket.take();
  other.send("b");
  other.flush();
  assert.deepEqual(socket.sent, [], "a sender cannot know in time that the turn is over");
  const empty = tts.turn();
  empty.end();
  empty.send("a");
  assert.deepEqual(socket.sent, []);
});

test("a turn that failed throws after its packets", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("a");
  socket.say(started("turn-1"));
  socket.sayAudio(2, 1);
  socket.say(failed("numerics", { turn_id: "turn-1", retryable: true }), done("turn-1", "error"));
  const iterator = turn[Symbol.asyncIterator]();
  assert.equal((await iterator.next()).value[0], 1);
  await assert.rejects(iterator.next(), (error) => {
    return error instanceof TurnError && error.code === "numerics" && error.retryable;
  });
  await assert.rejects(turn.done, TurnError);
});

test("an overloaded server says when to try again", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("a");
  const error = failed("overloaded", { turn_id: "turn-1", retryable: true, retry_after_ms: 850 });
  socket.say(error, done("turn-1", "error"));
  await assert.rejects(collect(turn), (caught) => {
    return caught instanceof OverloadedError && caught.retryAfterMs === 850;
  });
});

test("a turn that the server cut short by ending the session can be tried again", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("a");
  socket.say(done("turn-1", "closed"));
  await assert.rejects(turn.done, (error) => error.code === "closed" && error.retryable);
});

for (const reason of ["idle", "max_length", "guard_budget", "something_new"]) {
  test(`a turn that ends as ${reason} is no error`, async (t) => {
    const { tts, socket } = await connect(t);
    const turn = tts.turn();
    turn.send("a");
    socket.say(done("turn-1", reason));
    assert.deepEqual(await collect(turn), []);
    assert.equal((await turn.done).reason, reason);
  });
}

test("warnings about a turn are kept with it", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("…", { end: true });
  socket.say(warning("no_speakable_text", "turn-1"), done("turn-1"));
  socket.say(warning("late_text", "turn-1"));
  assert.deepEqual(
    turn.warnings.map((message) => message.code),
    ["no_speakable_text"],
  );
});

test("played reports carry the position", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.played({ playedMs: 1 });
  turn.send("a");
  socket.take();
  turn.played({ playedMs: 12.5 });
  turn.played({ playedSamples: 300 });
  for (const position of [{}, { playedMs: -1 }, { playedMs: NaN }, { playedSamples: Infinity }]) {
    assert.throws(() => turn.played(position), ClientError);
  }
  assert.deepEqual(socket.take(), [
    { type: "played", turn_id: "turn-1", played_ms: 12.5 },
    { type: "played", turn_id: "turn-1", played_samples: 300 },
  ]);
});
