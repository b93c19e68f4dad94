import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionLost } from "../src/index.js";
import {
  FakeSocket,
  READY,
  collect,
  connect,
  done,
  failed,
  settle,
  started,
} from "./fake-socket.js";

/** Lets time pass until another socket is opened; null if none is. */
async function nextSocket(t, withinMs) {
  const before = FakeSocket.last;
  for (let ms = 0; ms < withinMs; ms += 10) {
    t.mock.timers.tick(10);
    await settle();
    if (FakeSocket.last !== before) return FakeSocket.last;
  }
  return null;
}

/** A client that is connected, with a clock of the test's, which performance.now shows as well. */
async function make(t, options = {}) {
  const { tts, socket } = await connect(t, options);
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 0 });
  t.mock.method(performance, "now", () => Date.now());
  return { tts, socket };
}

async function accept(socket, ready = READY) {
  socket.say(ready);
  await settle();
  assert.equal(socket.sent.shift().type, "session.start");
  socket.say(ready);
  await settle();
}

test("between turns it connects again, with the settings that were in force", async (t) => {
  const seen = [];
  const { tts, socket } = await make(t, { onConnected: (connected) => seen.push(connected) });
  socket.drop();
  assert.equal(tts.connected, false);
  const next = await nextSocket(t, 300);
  next.say({ ...READY, settings: {} });
  await settle();
  assert.deepEqual(next.take(), [{ ...READY.settings, type: "session.start" }]);
  next.say(READY);
  await settle();
  assert.equal(tts.connected, true);
  assert.deepEqual(seen, [false, true]);
  const turn = tts.speak("Again.");
  await settle();
  assert.deepEqual(next.take(), [{ type: "text", turn_id: "turn-1", text: "Again.", end: true }]);
  next.say(started("turn-1"));
  next.sayAudio(2);
  next.say(done("turn-1"));
  assert.equal((await collect(turn)).length, 1);
});

test("each connection has a token of its own", async (t) => {
  let tokens = 0;
  const { tts, socket } = await make(t, { apiKey: () => `token-${++tokens}` });
  socket.drop();
  const next = await nextSocket(t, 300);
  assert.equal(socket.protocols[1], "realtime-tts.key.token-1");
  assert.equal(next.protocols[1], "realtime-tts.key.token-2");
  await accept(next);
  assert.equal(tts.connected, true);
});

test("a turn made meanwhile waits, and goes out once, whole", async (t) => {
  const { tts, socket } = await make(t);
  socket.drop();
  const turn = tts.turn();
  for (const delta of ["The ", "tide."]) turn.send(delta);
  const [ended, dropped, open] = [tts.speak("x"), tts.speak("no"), tts.turn()];
  await settle();
  assert.equal((await dropped.interrupt()).textRemaining, "no");
  const next = await nextSocket(t, 300);
  await accept(next);
  assert.deepEqual(next.take(), [
    { type: "text", turn_id: "turn-1", text: "The tide." },
    { type: "text", turn_id: "turn-2", text: "x", end: true },
  ]);
  turn.send(" Yes.");
  turn.end();
  open.send("later");
  assert.deepEqual(
    next.take().map((message) => message.text ?? message.type),
    [" Yes.", "turn.end", "later"],
  );
  for (const each of [turn, ended, open]) next.say(done(each.turnId));
  await Promise.all([turn.done, ended.done, open.done]);
});

test("a turn that was begun is never sent again: it fails with what was not heard", async (t) => {
  const { tts, socket } = await make(t);
  const [begun, queued, untouched] = [tts.turn(), tts.turn(), tts.turn()];
  begun.send("Good morning, everybody. The tide is coming in.");
  queued.send("And out.", { end: true });
  socket.say(started("turn-1"));
  for (let i = 0; i < 24; i++) socket.sayAudio(2000); // one second: about 15 characters
  socket.drop();
  await assert.rejects(queued.done, (error) => {
    return error instanceof ConnectionLost && error.textRemaining === "And out." && error.retryable;
  });
  const reader = collect(begun);
  await assert.rejects(reader, (error) => {
    assert.deepEqual(
      [error.textSpoken, error.textRemaining],
      ["Good morning, ", "everybody. The tide is coming in."],
    );
    return error instanceof ConnectionLost && error.name === "ConnectionLost";
  });
  const next = await nextSocket(t, 300);
  await accept(next);
  begun.send("more");
  begun.end();
  assert.deepEqual(next.sent, [], "nothing of a begun turn reaches the new connection");
  untouched.send("Hello.", { end: true });
  assert.deepEqual(
    next.take().map((message) => message.text),
    ["Hello."],
  );
  assert.deepEqual(
    socket.take().map((message) => message.text),
    [begun.text, "And out."],
  );
});

const RESUMING = { ...READY, settings: { ...READY.settings, resume: "on" } };
const state = (samples, more = {}) => ({
  type: "turn.state",
  turn_id: "turn-1",
  samples,
  text_chars: 3,
  state: `s${samples}`,
  ...more,
});

/** A client whose turns go on, with a turn that has two packets. */
async function makeResuming(t, options = {}) {
  const { tts, socket } = await make(t, { ready: RESUMING, ...options });
  const turn = tts.turn();
  turn.send("Good ");
  turn.flush();
  turn.send("mor");
  socket.say(started("turn-1"), state(1000, { part: "p", codes: "AAAA" }));
  socket.sayAudio(2000, 1);
  socket.say(state(2000, { codes: "BBBB" }));
  socket.sayAudio(2000, 2);
  return { tts, socket, turn };
}

test("a turn goes on in the next session, behind the last packet", async (t) => {
  const { socket, turn } = await makeResuming(t);
  socket.say(state(3000, { codes: "CCCC" })); // its packet is lost
  socket.drop();
  turn.send("ning");
  const next = await nextSocket(t, 300);
  turn.send(".");
  turn.end();
  await accept(next, RESUMING);
  assert.deepEqual(next.take(), [
    { type: "turn.codes", turn_id: "turn-1", codes: ["AAAA", "BBBB"] },
    {
      type: "turn.resume",
      turn_id: "turn-1",
      samples: 2000,
      text_chars: 3,
      words_chars: 0,
      part: "p",
      state: "s2000",
    },
    { type: "text", turn_id: "turn-1", text: "Good " },
    { type: "flush", turn_id: "turn-1" },
    { type: "text", turn_id: "turn-1", text: "morning.", end: true },
  ]);
  next.say(started("turn-1"), state(3000));
  next.sayAudio(2000, 3);
  next.say(done("turn-1", "complete", 3000));
  assert.deepEqual(
    (await collect(turn)).map((packet) => packet[0]),
    [1, 2, 3],
  );
  assert.equal((await turn.done).samples, 3000);
  assert.deepEqual([turn.resumes, turn.samplesReceived], [1, 3000]);
});

test("a turn goes on as often as it has to, with the codes of its last part", async (t) => {
  const { socket, turn } = await makeResuming(t);
  turn.end();
  socket.drop();
  const next = await nextSocket(t, 300);
  await accept(next, RESUMING);
  next.take();
  next.say(started("turn-1"), state(3000, { codes: "CCCC" }));
  next.sayAudio(2000, 3);
  next.say(state(4000, { part: "q", codes: "DDDD" }));
  next.sayAudio(2000, 4);
  next.drop();
  const third = await nextSocket(t, 300);
  await accept(third, RESUMING);
  const [codes, resume, ...text] = third.take();
  assert.deepEqual(codes.codes, ["DDDD"]);
  assert.deepEqual([resume.part, resume.state, resume.samples], ["q", "s4000", 4000]);
  assert.deepEqual(
    text.map((message) => message.text ?? message.type),
    ["Good ", "flush", "mor"],
  );
  assert.equal(text.at(-1).end, true);
  assert.equal(turn.resumes, 2);
});

test("a turn without a packet is sent again, and those behind it wait", async (t) => {
  const { tts, socket } = await make(t, { ready: RESUMING });
  const [first, second] = [tts.speak("One."), tts.speak("Two.")];
  await settle();
  socket.say(started("turn-1"), state(1000));
  socket.drop();
  const next = await nextSocket(t, 300);
  await accept(next, RESUMING);
  assert.deepEqual(next.take(), [
    { type: "text", turn_id: "turn-1", text: "One.", end: true },
    { type: "text", turn_id: "turn-2", text: "Two.", end: true },
  ]);
  assert.deepEqual([first.resumes, second.resumes], [0, 0]);
});

test("a flush behind the last text is told again, and then the end", async (t) => {
  const { tts, socket } = await make(t, { ready: RESUMING });
  const turn = tts.turn();
  turn.send("One.");
  turn.flush();
  turn.end();
  socket.drop();
  const next = await nextSocket(t, 300);
  await accept(next, RESUMING);
  assert.deepEqual(
    next.take().map((message) => message.text ?? message.type),
    ["One.", "flush", "turn.end"],
  );
});

test("words that came are not asked for again", async (t) => {
  const { socket, turn } = await makeResuming(t);
  const words = [{ text: "😀 Good", start_ms: 0, end_ms: 100 }];
  socket.say({ type: "turn.words", turn_id: "turn-1", words });
  socket.drop();
  const next = await nextSocket(t, 300);
  await accept(next, RESUMING);
  assert.equal(next.take()[1].words_chars, 6, "characters, not code units");
  assert.deepEqual(turn.words, words);
});

test("long speech is told in several messages", async (t) => {
  const { socket } = await makeResuming(t);
  for (let packet = 0; packet < 150; packet++) {
    socket.say(state(3000 + packet, { codes: "EEEE" }));
    socket.sayAudio(2000);
  }
  socket.drop();
  const next = await nextSocket(t, 300);
  await accept(next, RESUMING);
  assert.deepEqual(
    next
      .take()
      .filter((message) => message.codes)
      .map((message) => message.codes.length),
    [64, 64, 24],
  );
});

test("an interrupt while there is no connection ends a turn that could go on", async (t) => {
  const { socket, turn } = await makeResuming(t);
  socket.drop();
  const report = await turn.interrupt({ playedSamples: 2000 });
  assert.equal(report.textSpoken + report.textRemaining, "Good mor");
  assert.equal((await turn.done).reason, "interrupted");
  const next = await nextSocket(t, 300);
  await accept(next, RESUMING);
  assert.deepEqual(next.take(), []);
});

test("a turn that could go on fails when no connection comes back", async (t) => {
  const { socket, turn } = await makeResuming(t, { giveUpAfterMs: 1000 });
  socket.drop();
  for (let next; (next = await nextSocket(t, 3000)); ) next.fail("refused");
  await assert.rejects(turn.done, ConnectionLost);
});

test("who does not connect again does not ask for what that needs", async (t) => {
  const address = async (options) => (await connect(t, options)).socket.url;
  assert.match(await address({}), /\?resume=on$/);
  assert.doesNotMatch(await address({ giveUpAfterMs: 0 }), /resume/);
});

test("an interrupt after the loss is answered here", async (t) => {
  const { tts, socket } = await make(t);
  const [broken, heard] = [tts.speak("One two three four five six."), tts.speak("ab cd")];
  await settle();
  socket.say(started("turn-1"));
  for (let i = 0; i < 24; i++) socket.sayAudio(4000);
  socket.say(done("turn-1"), started("turn-2"));
  socket.sayAudio(48_000);
  socket.say(done("turn-2", "complete", 24_000));
  const report = broken.interrupt({ playedSamples: 24_000 }); // half of it
  socket.drop();
  assert.equal((await report).textSpoken, "One two three ");
  const all = await heard.interrupt({ playedMs: 1000 });
  assert.deepEqual([all.textSpoken, all.textRemaining, all.playedMs], ["ab cd", "", 1000]);
});

test("attempts come ever later, by chance, and end with a named error", async (t) => {
  t.mock.method(Math, "random", () => 1);
  const { tts, socket } = await make(t, { giveUpAfterMs: 20_000 });
  socket.drop();
  const turn = tts.turn();
  turn.send("a");
  const at = [];
  for (;;) {
    const next = await nextSocket(t, 30_000);
    if (!next) break;
    at.push(Date.now());
    next.fail("refused");
    await settle();
  }
  const waits = at.map((time, i) => time - (at[i - 1] ?? 0));
  assert.deepEqual(
    waits.map((ms) => Math.round(ms / 250)),
    [1, 2, 4, 8, 16, 32, 32],
  );
  await assert.rejects(turn.done, (error) => {
    return (
      error instanceof ConnectionLost &&
      /no session/.test(error.message) &&
      error.textRemaining === "a"
    );
  });
  const later = tts.speak("b");
  const next = await nextSocket(t, 300);
  await accept(next);
  next.say(done(later.turnId));
  await later.done;
});

test("chance takes off up to half of the wait", async (t) => {
  t.mock.method(Math, "random", () => 0);
  const { socket } = await make(t);
  socket.drop();
  assert.ok(await nextSocket(t, 130));
});

test("a server that says when to come back is believed", async (t) => {
  const { socket } = await make(t);
  socket.drop();
  const full = await nextSocket(t, 300);
  full.say(failed("too_many_sessions", { fatal: true, retryable: true, retry_after_ms: 5000 }));
  full.drop(1013);
  await settle();
  assert.equal(await nextSocket(t, 4900), null);
  assert.ok(await nextSocket(t, 200));
});

for (const [why, lose, options] of [
  ["the server refused the client", (socket) => socket.drop(1008), {}],
  [
    "the client was too fast",
    (socket) => {
      socket.say(failed("rate_limited", { fatal: true }));
      socket.drop(1008);
    },
    {},
  ],
  ["it is no such server", (socket) => socket.say("{}"), {}],
  ["it is told not to", (socket) => socket.drop(), { giveUpAfterMs: 0 }],
  ["the client was closed", (_, tts) => tts.close(), {}],
]) {
  test(`it does not connect again if ${why}`, async (t) => {
    const { tts, socket } = await make(t, options);
    const turn = tts.turn();
    lose(socket, tts);
    await assert.rejects(turn.done, ConnectionLost, "a turn without text is over as well");
    assert.throws(() => tts.turn(), ConnectionLost);
    assert.throws(() => tts.speak("a"), ConnectionLost);
    await assert.rejects(tts.configure({ voice: "ava" }), ConnectionLost);
    assert.equal(await nextSocket(t, 20_000), null);
  });
}

test("settings that the server no longer takes end the effort", async (t) => {
  const { tts, socket } = await make(t);
  socket.drop();
  const turn = tts.speak("a");
  const next = await nextSocket(t, 300);
  next.say(READY);
  await settle();
  next.say(failed("bad_settings"));
  await assert.rejects(turn.done, /bad_settings/);
  assert.equal(await nextSocket(t, 20_000), null);
});

test("closing while it connects closes the new socket, too", async (t) => {
  const { tts, socket } = await make(t);
  socket.drop();
  const turn = tts.turn();
  const next = await nextSocket(t, 300);
  tts.close();
  await accept(next);
  assert.equal(next.closedWith, 1000);
  await assert.rejects(turn.done, ConnectionLost);
  assert.equal(await nextSocket(t, 20_000), null);
});

test("errors of the engine carry what was not heard as well", async (t) => {
  const { tts, socket } = await make(t);
  const turn = tts.turn();
  turn.send("Good morning.");
  socket.say(
    failed("engine_restarted", { turn_id: "turn-1", retryable: true }),
    done("turn-1", "error"),
  );
  await assert.rejects(turn.done, (error) => error.textRemaining === "Good morning.");
});
