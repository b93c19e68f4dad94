import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ClientError,
  ConnectionLost,
  OverloadedError,
  RealtimeTTS,
  TurnError,
} from "../src/index.js";
import {
  FakeSocket,
  READY,
  done,
  failed,
  fixtures,
  interrupted,
  settle,
  started,
  warning,
} from "./fake-socket.js";

/** A client and the server's end of its socket, until the test is over. */
async function connect(t, options = {}, ready = READY) {
  const opening = RealtimeTTS.connect("ws://server", { WebSocket: FakeSocket, ...options });
  FakeSocket.last.say(ready);
  const tts = await opening;
  t.after(() => tts.close());
  return { tts, socket: FakeSocket.last };
}

async function collect(turn) {
  const packets = [];
  for await (const packet of turn) packets.push(packet);
  return packets;
}

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
    textChars: 1,
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
  assert.throws(() => turn.played({}), /played_ms or played_samples/);
  assert.deepEqual(socket.take(), [
    { type: "played", turn_id: "turn-1", played_ms: 12.5 },
    { type: "played", turn_id: "turn-1", played_samples: 300 },
  ]);
});

/* Interrupting */

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
  const { tts, socket } = await connect(t, {}, { ...READY, limits: slow });
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

test("a server that does not answer an interrupt is given up", async (t) => {
  const { tts, socket } = await connect(t, { replyTimeoutMs: 50 });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const turn = tts.turn();
  turn.send("a");
  const reporting = turn.interrupt();
  t.mock.timers.tick(50);
  await assert.rejects(reporting, ConnectionLost);
  assert.notEqual(socket.closedWith, null);
});

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

/* speak */

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

/* PROTOCOL.md */

const PLAYABLE = ["Deltas from a language model", "Barge-in", "Barge-in at the end"];

for (const { title, steps } of fixtures.conversations.filter(({ title }) =>
  PLAYABLE.includes(title),
)) {
  test(`the client plays its side of “${title}” as PROTOCOL.md shows it`, async (t) => {
    const { tts, socket } = await connect(t);
    const turns = new Map();
    const reports = [];
    for (const step of steps) {
      if (step.client) {
        const message = JSON.parse(step.client);
        const name = message.turn_id;
        if (!turns.has(name)) turns.set(name, tts.turn({ turnId: name }));
        const turn = turns.get(name);
        const { played_ms: playedMs, played_samples: playedSamples } = message;
        if (message.type === "text") turn.send(message.text, { end: message.end });
        if (message.type === "turn.end") turn.end();
        if (message.type === "interrupt") reports.push(turn.interrupt({ playedMs, playedSamples }));
        assert.deepEqual(socket.take(), [message]);
      } else if (step.server) socket.say(step.server);
      else for (let i = 0; i < step.packets; i++) socket.sayAudio(step.audio_bytes);
    }
    const said = (type) => steps.map((step) => step.server).filter((m) => m?.type === type);
    for (const message of said("turn.done")) {
      const { reason, samples, ttfaMs } = await turns.get(message.turn_id).done;
      assert.deepEqual(
        [reason, samples, ttfaMs],
        [message.reason, message.samples, message.ttfa_ms],
      );
      assert.equal(turns.get(message.turn_id).samplesReceived, message.samples);
    }
    const heard = (await Promise.all(reports)).map((report) => report.textSpoken);
    assert.deepEqual(
      heard,
      said("turn.interrupted").map((message) => message.text_spoken),
    );
  });
}
