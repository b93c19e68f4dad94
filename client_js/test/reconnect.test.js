import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionLost } from "../src/index.js";
import {
  READY,
  accept,
  collect,
  done,
  failed,
  nextSocket,
  settle,
  started,
  timed,
} from "./fake-socket.js";

test("between turns it connects again, with the settings that were in force", async (t) => {
  const seen = [];
  const { tts, socket } = await timed(t, { onConnected: (connected) => seen.push(connected) });
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

test("it connects again even if `onConnected` throws", async (t) => {
  const onConnected = (connected) => assert.ok(connected, "the app's mistake");
  const { tts } = await timed(t, { onConnected });
  const unanswered = assert.rejects(tts.configure({ voice: "ben" }), ConnectionLost);
  t.mock.timers.tick(5_000);
  assert.throws(() => t.mock.timers.tick(5_000), /the app's mistake/);
  assert.notEqual(await nextSocket(t, 300), null);
  await unanswered;
});

test("each connection has a token of its own", async (t) => {
  let tokens = 0;
  const { tts, socket } = await timed(t, { apiKey: () => `token-${++tokens}` });
  socket.drop();
  const next = await nextSocket(t, 300);
  assert.equal(socket.protocols[1], "realtime-tts.key.token-1");
  assert.equal(next.protocols[1], "realtime-tts.key.token-2");
  await accept(next);
  assert.equal(tts.connected, true);
});

for (const [what, fails] of [
  ["cannot be got while the network is away", () => Promise.reject(new TypeError("fetch failed"))],
  ["is refused without a reason", () => Promise.reject()],
  ["does not come in time", () => new Promise(() => {})],
]) {
  test(`a token that ${what} is asked for again`, async (t) => {
    const keys = ["token-1", null, "token-3"];
    const apiKey = async () => keys.shift() ?? fails();
    const { tts, socket } = await timed(t, { apiKey, connectTimeoutMs: 500 });
    socket.drop();
    const turn = tts.speak("a");
    const next = await nextSocket(t, 2000);
    assert.equal(next?.protocols[1], "realtime-tts.key.token-3");
    await accept(next);
    next.say(done(turn.turnId));
    await turn.done;
  });
}

test("a token that never comes ends the effort like no server", async (t) => {
  let asked = 0;
  const apiKey = () => (asked++ ? Promise.reject(new TypeError("fetch failed")) : "token-1");
  const { tts, socket } = await timed(t, { apiKey, giveUpAfterMs: 2000 });
  socket.drop();
  const turn = tts.speak("a");
  assert.equal(await nextSocket(t, 5000), null);
  await assert.rejects(turn.done, (error) => {
    return error instanceof ConnectionLost && error.retryable && /fetch failed/.test(error.message);
  });
  assert.ok(asked > 3, `${asked} times`);
});

test("settings that change meanwhile wait, in their place among the turns", async (t) => {
  const { tts, socket } = await timed(t);
  socket.drop();
  tts.speak("Before.");
  const changed = tts.configure({ voice: "ben" });
  tts.speak("Behind.");
  await settle();
  const next = await nextSocket(t, 300);
  await accept(next);
  assert.deepEqual(
    next.take().map((message) => message.text ?? message.voice),
    ["Before.", "ben", "Behind."],
  );
  next.say({ ...READY, session_id: "later" });
  await changed;
  assert.equal(tts.ready.session_id, "later");
});

test("told not to connect again, it does so for who needs a connection, and once", async (t) => {
  const { tts, socket } = await timed(t, { giveUpAfterMs: 0 });
  const [begun, empty] = [tts.speak("a"), tts.turn()];
  await settle();
  socket.drop();
  await assert.rejects(begun.done, ConnectionLost);
  await assert.rejects(empty.done, ConnectionLost, "a turn without text is over as well");
  assert.equal(await nextSocket(t, 20_000), null);
  const failing = tts.speak("b");
  (await nextSocket(t, 300)).fail("refused");
  await assert.rejects(failing.done, ConnectionLost);
  assert.equal(await nextSocket(t, 20_000), null);
  const changed = tts.configure({ voice: "ben" });
  const turn = tts.speak("c");
  await settle();
  const next = await nextSocket(t, 300);
  await accept(next);
  assert.deepEqual(
    next.take().map((message) => message.text ?? message.voice),
    ["ben", "c"],
  );
  next.say(READY, done(turn.turnId));
  await Promise.all([changed, turn.done]);
});

test("a turn made meanwhile waits, and goes out once, whole", async (t) => {
  const { tts, socket } = await timed(t);
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
  const { tts, socket } = await timed(t);
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

test("an interrupt after the loss is answered here", async (t) => {
  const { tts, socket } = await timed(t);
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
  const { tts, socket } = await timed(t, { giveUpAfterMs: 20_000 });
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
  const { socket } = await timed(t);
  socket.drop();
  assert.ok(await nextSocket(t, 130));
});

test("a server that says when to come back is believed", async (t) => {
  const { socket } = await timed(t);
  socket.drop();
  const full = await nextSocket(t, 300);
  full.say(failed("too_many_sessions", { fatal: true, retryable: true, retry_after_ms: 5000 }));
  full.drop(1013);
  await settle();
  assert.equal(await nextSocket(t, 4900), null);
  assert.ok(await nextSocket(t, 200));
});

test("a server that says to come back too late is given up at once", async (t) => {
  const { tts, socket } = await timed(t, { giveUpAfterMs: 20_000 });
  socket.drop();
  const turn = tts.speak("a");
  const full = await nextSocket(t, 300);
  const tomorrow = { fatal: true, retryable: true, retry_after_ms: 86_400_000 };
  full.say(failed("quota_exceeded", tomorrow));
  full.drop(1013);
  await settle();
  assert.ok(turn.over);
  await assert.rejects(turn.done, /quota_exceeded/);
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
  ["the client was closed", (_, tts) => tts.close(), {}],
]) {
  test(`it does not connect again if ${why}`, async (t) => {
    const { tts, socket } = await timed(t, options);
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
  const { tts, socket } = await timed(t);
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
  const { tts, socket } = await timed(t);
  socket.drop();
  const turn = tts.turn();
  const next = await nextSocket(t, 300);
  tts.close();
  await accept(next);
  assert.equal(next.closedWith, 1000);
  await assert.rejects(turn.done, ConnectionLost);
  assert.equal(await nextSocket(t, 20_000), null);
});

test("closing while it connects in vain is the end of that", async (t) => {
  const { tts, socket } = await timed(t);
  socket.drop();
  const next = await nextSocket(t, 300);
  tts.close();
  next.fail("refused");
  assert.equal(await nextSocket(t, 20_000), null);
});

test("errors of the engine carry what was not heard as well", async (t) => {
  const { tts, socket } = await timed(t);
  const turn = tts.turn();
  turn.send("Good morning.");
  socket.say(
    failed("engine_restarted", { turn_id: "turn-1", retryable: true }),
    done("turn-1", "error"),
  );
  await assert.rejects(turn.done, (error) => error.textRemaining === "Good morning.");
});
