import assert from "node:assert/strict";
import { test } from "node:test";

import { collect, connect, done, settle, started } from "./fake-socket.js";

test("speak takes a string, an iterable, or deltas as they come", async (t) => {
  const { tts, socket } = await connect(t);
  async function* deltas() {
    yield "a";
    await settle();
    yield "b";
  }
  const texts = [];
  for (const source of ["ab", ["a", "b"], deltas()]) {
    const turn = tts.speak(source);
    await settle();
    await settle();
    texts.push(socket.take().map(({ text, type, end }) => [text ?? type, end ?? false]));
    socket.say(started(turn.turnId));
    socket.sayAudio(2);
    socket.say(done(turn.turnId));
    assert.equal((await collect(turn)).length, 1);
  }
  assert.deepEqual(texts, [
    [["ab", true]],
    [
      ["a", false],
      ["b", false],
      ["turn.end", false],
    ],
    [
      ["a", false],
      ["b", false],
      ["turn.end", false],
    ],
  ]);
});

test("if the text throws, so does the turn, and the server stops", async (t) => {
  const { tts, socket } = await connect(t);
  async function* deltas() {
    yield "a";
    throw new RangeError("the model broke");
  }
  await assert.rejects(collect(tts.speak(deltas())), RangeError);
  assert.deepEqual(
    socket.take().map((message) => message.type),
    ["text", "interrupt"],
  );
});

test("when the turn is over or interrupted, no more text is asked for", async (t) => {
  const { tts, socket } = await connect(t);
  for (const stop of [
    (turn) => turn.interrupt().catch(() => {}),
    (turn) => socket.say(done(turn.turnId)),
  ]) {
    let asked = 0;
    let returned = false;
    async function* deltas() {
      try {
        for (;;) {
          asked += 1;
          yield "a";
          await settle();
        }
      } finally {
        returned = true;
      }
    }
    const turn = tts.speak(deltas());
    await settle();
    stop(turn);
    await settle();
    await settle();
    const before = asked;
    await settle();
    await settle();
    assert.equal(asked, before);
    assert.equal(returned, true);
  }
});
