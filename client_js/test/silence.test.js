import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionLost } from "../src/index.js";
import { READY, connect, done } from "./fake-socket.js";

const SIGN = { type: "session.start" };
const LITTLE_MS = 40;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test("a turn whose network is gone without a word ends", async (t) => {
  const { tts, socket } = await connect(t, { replyTimeoutMs: LITTLE_MS, giveUpAfterMs: 0 });
  const turn = tts.turn();
  turn.send("Hello.", { end: true });
  await assert.rejects(turn.done, (error) => {
    return error instanceof ConnectionLost && /no `ready` within 40 ms/.test(error.message);
  });
  assert.deepEqual(socket.sent.at(-1), SIGN);
  assert.notEqual(socket.closedWith, null);
});

test("while a turn waits, the server is asked, and settings stay as they are", async (t) => {
  const { tts, socket } = await connect(t, { replyTimeoutMs: LITTLE_MS });
  const turn = tts.turn();
  for (let asked = 0; asked < 2; ) {
    await sleep(5);
    for (const message of socket.take()) {
      assert.deepEqual(message, SIGN);
      socket.say(READY);
      asked++;
    }
  }
  turn.send("Hello.", { end: true });
  socket.say(done("turn-1"));
  await turn.done;
  assert.equal(tts.connected, true);
});

test("without a turn nothing is asked", async (t) => {
  const { tts, socket } = await connect(t, { replyTimeoutMs: LITTLE_MS });
  await sleep(3 * LITTLE_MS);
  assert.deepEqual(socket.sent, []);
  assert.equal(tts.connected, true);
});
