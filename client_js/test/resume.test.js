import assert from "node:assert/strict";
import { connect as open, createServer } from "node:net";
import { test } from "node:test";

import WebSocket from "ws";

import { ConnectionLost, RealtimeTTS } from "../src/index.js";
import { serve, skip } from "./browser/server.js";
import {
  accept,
  collect,
  connect,
  done,
  failed,
  nextSocket,
  settle,
  started,
  timed,
} from "./fake-socket.js";
import { RESUMING, makeResuming, state } from "./resuming.js";

test("a turn that a server cuts off as it stops goes on elsewhere", async (t) => {
  const { socket, turn } = await makeResuming(t);
  socket.say(failed("going_away", { fatal: true, retryable: true }), done("turn-1", "closed", 2000));
  socket.drop(1001);
  const next = await nextSocket(t, 300);
  await accept(next, RESUMING);
  assert.equal(next.take().find(({ type }) => type === "turn.resume").samples, 2000);
  next.say(started("turn-1"), done("turn-1", "complete", 2000));
  assert.equal((await turn.done).reason, "complete");
  assert.equal(turn.resumes, 1);
});

test("a turn for which every server stops fails in the end, one without text does not", async (t) => {
  const { tts, socket: first } = await timed(t, { ready: RESUMING });
  const [bad, good] = [tts.speak("This stops a server."), tts.turn()];
  const failure = assert.rejects(bad.done, { name: "ConnectionLost", message: /internal/ });
  const stop = failed("internal", { fatal: true, retryable: true });
  let lost = 0;
  for (let socket = first; !bad.over; socket = await nextSocket(t, 300)) {
    if (lost) await accept(socket, RESUMING);
    socket.say(stop, done("turn-1", "closed"));
    socket.drop(1011);
    assert.ok(++lost < 100, "it tries for ever");
    await settle();
  }
  await failure;
  assert.equal(lost, 9, "one and, as with the Python client, 8 in vain");
  assert.equal(good.over, false, "it has no text that a server could stop for");
});

test("a turn that gets on goes on however often a server stops", async (t) => {
  const made = await makeResuming(t);
  for (let { socket } = made, at = 3; at < 30; at++) {
    socket.drop(1011);
    socket = await nextSocket(t, 300);
    await accept(socket, RESUMING);
    socket.say(started("turn-1"), state(1000 * at));
    socket.sayAudio(2000, at);
  }
  assert.deepEqual([made.turn.over, made.turn.resumes], [false, 27]);
});

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
  const { tts, socket } = await timed(t, { ready: RESUMING });
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
  const { tts, socket } = await timed(t, { ready: RESUMING });
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

test("what was heard is not the whole text, only because the rest had not come", async (t) => {
  const { socket, turn } = await makeResuming(t);
  const text = "ning, and good evening. ".repeat(20);
  turn.send(text);
  socket.drop();
  const report = await turn.interrupt({ playedSamples: 2000 }); // all that came
  assert.ok(report.textSpoken.length < 20, report.textSpoken);
  assert.equal(report.textSpoken + report.textRemaining, `Good mor${text}`);
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

const WORDS = Array.from({ length: 4 }, (_, i) => `word${i} `);

/** Something in front of servers: it leads to the first of them that still takes connections. */
async function proxy(t, servers) {
  const relay = createServer((near) => {
    near.on("error", () => near.destroy());
    const to = (index) => {
      if (index === servers.length) return near.destroy();
      const far = open(new URL(servers[index].url).port, "127.0.0.1");
      const next = () => to(index + 1);
      far.once("error", next);
      far.once("connect", () => {
        far.off("error", next).on("error", () => near.destroy());
        far.on("close", () => near.destroy());
        near.on("close", () => far.destroy());
        near.pipe(far).pipe(near);
      });
    };
    to(0);
  });
  await new Promise((resolve) => relay.listen(0, "127.0.0.1", resolve));
  t.after(() => relay.close());
  return `ws://127.0.0.1:${relay.address().port}`;
}

test("a reply outlives its server: not a sample is missing, and none comes twice", { skip }, async (t) => {
  const servers = await Promise.all([0, 1].map(() => serve(t, "--engine", "fake")));
  const url = await proxy(t, servers);
  const options = { WebSocket, seed: 7, pacing: "token", leadMs: 500 };
  const tts = await RealtimeTTS.connect(url, options);
  t.after(() => tts.close());
  const whole = tts.turn();
  for (const word of WORDS) whole.send(word);
  whole.end();
  const wanted = Buffer.concat(await collect(whole));

  const turn = tts.turn();
  const packets = [];
  let sent = 0;
  let bytes = 0;
  for (const word of WORDS) {
    turn.send(word);
    sent += word.length;
  }
  turn.end();
  for await (const packet of turn) {
    packets.push(packet);
    bytes += packet.length;
    if (bytes > 48_000) servers[0].kill();
  }
  const found = Buffer.concat(packets);
  assert.equal(turn.resumes, 1);
  assert.equal(found.length, wanted.length);
  assert.ok(found.equals(wanted));
  const { reason, samples, textChars } = await turn.done;
  assert.deepEqual([reason, samples, textChars], ["complete", wanted.length / 2, sent]);
});
