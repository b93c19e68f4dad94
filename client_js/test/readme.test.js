import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";

import * as everything from "../src/index.js";
import { FakeSocket, READY, done, interrupted, started } from "./fake-socket.js";

const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const [browser, node, turns, bargeIn, captions, , again, tokens] = [...README.matchAll(/^```js\n(.*?)^```/gms)].map(
  (m) => m[1],
);

const FRONT_PAGE = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

/** A server that is ready at once and speaks two packets for every turn. */
class TalkingSocket extends FakeSocket {
  constructor(...args) {
    super(...args);
    setImmediate(() => this.say(READY));
  }

  send(data) {
    const message = JSON.parse(data);
    if (message.type === "session.start") setImmediate(() => this.say(READY));
    if (message.type === "turn.end" || message.end) this.speak(message.turn_id);
    if (message.type === "interrupt") this.stop(message.turn_id);
  }

  speak(turnId) {
    this.say(started(turnId));
    this.sayAudio(3840);
    this.sayAudio(4096);
    this.say(done(turnId, "complete", 3968));
  }

  stop(turnId) {
    this.say(interrupted(turnId, "heard", "not heard"), done(turnId, "interrupted"));
  }
}

/** Runs an example as it stands, but for its imports: they are given. */
function run(example, given) {
  const imported = [...example.matchAll(/^import \{ (.*?) \} from "realtime-tts";$/gm)];
  for (const [, names] of imported)
    assert.ok(names.split(", ").every((name) => name in everything));
  const body = example.replace(/^import .*\n/gm, "");
  const AsyncFunction = (async () => {}).constructor;
  return new AsyncFunction(...Object.keys(given), body)(...Object.values(given));
}

function players() {
  const played = [];
  return { played, play: (packet) => played.push(new Int16Array(packet.buffer).length) };
}

const opened = [];
after(() => opened.forEach((tts) => tts.close()));

class RealtimeTTS {
  static async connect(url, options) {
    const tts = await everything.RealtimeTTS.connect(url, { WebSocket: TalkingSocket, ...options });
    opened.push(tts);
    return tts;
  }
}

test("the browser example plays", async () => {
  const { played, play } = players();
  await run(browser, { RealtimeTTS, play, deltas: ["a", "b"] });
  assert.deepEqual(played, [1920, 2048]);
});

test("the example of the repository's README plays", async () => {
  const [, example] = FRONT_PAGE.match(/^```js\n(.*?)^```/ms);
  const shown = [];
  await run(example, { RealtimeTTS, console: { log: (bytes) => shown.push(bytes) } });
  assert.deepEqual(shown, [3840, 4096]);
  assert.notEqual(FakeSocket.last.closedWith, null, "an open socket keeps a program in Node running");
});

test("the Node example writes", async () => {
  const { played, play } = players();
  const createWriteStream = () => ({ write: play });
  await run(node, { RealtimeTTS, createWriteStream, WebSocket: TalkingSocket });
  assert.deepEqual(played, [1920, 2048]);
});

test("the example of a turn plays, and that of an interrupt reports", async () => {
  const { played, play } = players();
  const tts = await RealtimeTTS.connect("server");
  await run(turns, { tts, play });
  assert.deepEqual(played, [1920, 2048]);
  const turn = tts.turn();
  turn.send("a");
  const report = `${bargeIn} return [textSpoken, textRemaining];`;
  assert.deepEqual(await run(report, { turn }), ["heard", "not heard"]);
});

test("the example of captions shows the words that were heard", async () => {
  const shown = [];
  const words = [
    { text: "Good", start_ms: 0, end_ms: 268 },
    { text: " morning.", start_ms: 268, end_ms: 1137 },
    { text: " The", start_ms: 1137, end_ms: 1388 },
  ];
  const at = [0.1, 0.5, 1.2, 2];
  const stats = () => ({ heardSeconds: at.shift(), playedSeconds: 2, state: at.length > 1 ? "playing" : "done" });
  await run(captions, {
    tts: { speak: () => ({ words }) },
    player: { play: (turn) => ({ turn, stats }) },
    caption: { set textContent(text) { shown.push(text); } },
    requestAnimationFrame: (callback) => callback(),
  });
  assert.deepEqual(shown, ["", "Good", "Good morning.", "Good morning. The"]);
});

test("the example of a lost connection speaks the rest", async () => {
  const lost = Object.assign(new everything.ConnectionLost("gone"), { textRemaining: "the rest" });
  const said = [];
  const given = {
    ConnectionLost: everything.ConnectionLost,
    playback: { done: Promise.reject(lost) },
    player: { play: (text) => said.push(text) },
    tts: { speak: (text) => text },
  };
  await run(again, given);
  assert.deepEqual(said, ["the rest"]);
});

test("every method and error that the tables name exists", () => {
  const { RealtimeTTS: Client, Turn, ...rest } = everything;
  for (const [, of, name] of README.matchAll(/`(tts|turn)\.(\w+)/g)) {
    const made = of === "tts" ? Client.prototype : new Turn("a", () => false);
    assert.ok(name in made, `${of}.${name}`);
  }
  const errors = Object.keys(rest).filter((name) => /Error$|Lost$|Refused$/.test(name));
  for (const name of errors) assert.match(README, new RegExp(`\`${name}`), name);
});

test("the example of tokens connects with one", async () => {
  const asked = [];
  const fetch = async (path) => (asked.push(path), { json: async () => ({ token: "a-token" }) });
  await run(tokens, { RealtimeTTS, fetch });
  assert.deepEqual(asked, ["/speech-token"]);
  assert.equal(FakeSocket.last.protocols[1], "realtime-tts.key.a-token");
});
