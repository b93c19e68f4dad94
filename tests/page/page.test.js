// The parts of the page that need no page.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

import { echoes } from "../../realtime_tts/server/page/echo.js";
import { History } from "../../realtime_tts/server/page/history.js";
import { SpeechGate, decibels } from "../../realtime_tts/server/page/level.js";
import { SNIPPETS } from "../../realtime_tts/server/page/snippets.js";
import { Trace } from "../../realtime_tts/server/page/trace.js";
import { wav } from "../../realtime_tts/server/page/wav.js";

/* What happened. */

test("a turn that has a frame for every token waits for text", () => {
  const trace = new Trace();
  trace.text(0, 4);
  trace.packet(50, 0.16); // 2 frames of 4 tokens, of which 3 may still be on their way
  trace.sample(100, { lead: 0.1, peak: 0, textOpen: true });
  assert.equal(trace.isHeld, false, "50 ms are no wait");
  trace.sample(300, { lead: 0, peak: 0, textOpen: true });
  assert.equal(trace.isHeld, true);
  assert.equal(trace.heldSeconds(550), 0.5, "since the last packet");
  trace.packet(650, 0.08);
  assert.equal(trace.isHeld, false);
  assert.equal(trace.heldSeconds(900), 0.6);
  assert.equal(trace.ttfaMs, 50);
});

test("a gap is an underrun, but for one for want of text", () => {
  const trace = new Trace();
  trace.text(0, 30);
  trace.packet(50, 0.08);
  trace.gap(200, true);
  assert.deepEqual(trace.underruns, [200], "there was text to speak");
  trace.text(210, 4);
  trace.gap(300, true);
  assert.deepEqual(trace.underruns, [200]);
  trace.gap(400, false);
  assert.deepEqual(trace.underruns, [200, 400], "all text had come");
});

test("a turn whose text has ended is not held, and neither is one that is ahead", () => {
  const trace = new Trace();
  trace.text(0, 40);
  trace.packet(50, 3);
  trace.sample(900, { lead: 2.5, peak: 0, textOpen: false });
  assert.equal(trace.isHeld, false);
  trace.sample(1200, { lead: 2.8, peak: 0, textOpen: true });
  assert.equal(trace.isHeld, false, "it rests, for it is far ahead");
  trace.sample(1800, { lead: 2.2, peak: 0, textOpen: true });
  assert.equal(trace.isHeld, true, "by now more would have come");
  trace.text(1801, 60);
  trace.sample(1820, { lead: 2.2, peak: 0, textOpen: true });
  assert.equal(trace.isHeld, false, "there is text to speak");
});

test("the ramp has the first pieces that came at once", () => {
  const trace = new Trace();
  trace.text(0, 100);
  const pieces = [[50], [130], [250, 251, 252], [600, 601], [900], [1300]]; // when packets came
  for (const packets of pieces) for (const at of packets) trace.packet(at, 0.08);
  assert.deepEqual(trace.ramp.map((seconds) => Math.round(seconds * 100)), [8, 8, 24, 16, 8]);
});

test("only what the chart shows is kept", () => {
  const trace = new Trace();
  for (let now = 0; now < 60_000; now += 100) {
    trace.packet(now, 0.1);
    trace.sample(now, { lead: 1, peak: 0.5, textOpen: false });
  }
  assert.ok(trace.samples.length < 200 && trace.packets.length < 200);
  assert.equal(trace.packetCount, 600);
});

/* The chat. */

test("the history ends where the person stopped hearing", () => {
  const history = new History();
  history.user("When is the train?");
  const reply = history.reply();
  reply.content = "At ten past six. There is another at seven.";
  history.cut(reply, "At ten past six. ");
  history.user("And back?");
  assert.deepEqual(history.toSend(), [
    { role: "user", content: "When is the train?" },
    { role: "assistant", content: "At ten past six." },
    { role: "user", content: "And back?" },
  ]);
});

test("a reply of which nothing was heard was never made", () => {
  const history = new History();
  history.user("Hello");
  const reply = history.reply();
  reply.content = "Good evening.";
  history.cut(reply, "");
  assert.deepEqual(history.messages, [{ role: "user", content: "Hello" }]);
});

test("a reply not begun is not sent to the model", () => {
  const history = new History();
  history.user("Hello");
  history.reply();
  assert.deepEqual(history.toSend(), [{ role: "user", content: "Hello" }]);
});

/* The microphone. */

test("what is being spoken is an echo, whatever its marks; what is not was said by somebody", () => {
  const spoken = "Good evening. There are two trains to the coast, today.";
  assert.ok(echoes("two trains to the Coast today", spoken));
  assert.ok(!echoes("two trains to the city", spoken));
  assert.ok(!echoes("train", spoken), "half a word");
  assert.ok(!echoes("stop", ""));
  assert.ok(echoes("潮が", "潮が 満ちる"));
});

test("full scale is 0 dB for a square, −3 for a sine, and silence is far below", () => {
  assert.equal(decibels(new Float32Array([1, -1, 1, -1])), 0);
  const sine = Float32Array.from({ length: 1000 }, (_, i) => Math.sin(i / 10));
  assert.ok(Math.abs(decibels(sine) + 3) < 0.1);
  assert.equal(decibels(new Float32Array(8)), -100);
});

/** When speech began, of levels every 30 ms. @param {number[]} levels */
function begins(levels) {
  const gate = new SpeechGate({ attackMs: 120, hangoverMs: 600 });
  return levels.flatMap((level, i) => (gate.hear(i * 30, level, -35) ? [i * 30] : []));
}

test("speech begins after 120 ms of it, once, pauses between words included", () => {
  const word = Array(10).fill(-20);
  const pause = Array(10).fill(-60);
  assert.deepEqual(begins([...pause, ...word, ...pause, ...word]), [420]);
});

test("after a longer silence it begins again", () => {
  const word = Array(10).fill(-20);
  assert.deepEqual(begins([...word, ...Array(30).fill(-60), ...word]), [120, 1320]);
});

test("a click does not begin it, and neither do clicks far apart", () => {
  const click = [-5, -5, ...Array(20).fill(-60)];
  assert.deepEqual(begins([...click, ...click, ...click]), []);
});

/* Taking it away. */

test("a WAV file says how long it is", () => {
  const parts = wav([new Uint8Array([1, 2, 3, 4]), new Uint8Array([5, 6])], 24_000);
  const file = Buffer.concat(parts);
  assert.equal(file.length, 50);
  assert.equal(file.toString("latin1", 0, 4) + file.toString("latin1", 8, 16), "RIFFWAVEfmt ");
  assert.equal(file.readUInt32LE(4), 42);
  assert.equal(file.readUInt32LE(24), 24_000);
  assert.equal(file.readUInt32LE(40), 6);
  assert.deepEqual([...file.subarray(44)], [1, 2, 3, 4, 5, 6]);
});

const HARD = `It's "quoted" $HOME \`ls\` \\n ünï\nnext line`;
const SETTINGS = { model: null, language: "auto", instructions: 'In a "hurry"', pacing: "clause", layout: null };
const settings = { ...SETTINGS, voice: "a'b" };
const spoken = { origin: "http://127.0.0.1:8000", text: HARD, settings, key: true };

test("curl says what was said, in one request", () => {
  for (const key of [true, false]) {
    const command = SNIPPETS.curl({ ...spoken, key });
    const lines = command.split("\n").filter((line) => !line.startsWith("export")).join("\n");
    const script = `curl() { printf '%s\\0' "$@"; }\nREALTIME_TTS_API_KEY=k\n${lines}`;
    const { stdout, stderr } = spawnSync("bash", ["-c", script], { encoding: "utf8" });
    assert.equal(stderr, "");
    const words = stdout.split("\0").slice(0, -1);
    const at = words.indexOf("-d") + 1;
    assert.deepEqual(JSON.parse(words[at]), {
      input: HARD, voice: "a'b", language: "auto", instructions: 'In a "hurry"', response_format: "wav",
    });
    assert.equal(words[0], "http://127.0.0.1:8000/v1/audio/speech");
    assert.equal(words.includes("Authorization: Bearer k"), key);
    assert.ok(words.includes("Content-Type: application/json"));
    assert.deepEqual(words.slice(-2), ["--output", "speech.wav"]);
  }
});

test("the programs parse, and hold no key", () => {
  const tree = "import ast, sys; print(ast.dump(ast.parse(sys.stdin.read())))";
  const python = spawnSync("python3", ["-c", tree], { input: SNIPPETS.python(spoken), encoding: "utf8" });
  assert.equal(python.status, 0, python.stderr);
  const flags = ["--input-type=module", "--check"];
  const script = spawnSync(process.execPath, flags, { input: SNIPPETS.javascript(spoken), encoding: "utf8" });
  assert.equal(script.status, 0, script.stderr);
  assert.ok(python.stdout.includes(`keyword(arg='pacing', value=Constant(value='clause'))`), python.stdout);
  assert.ok(!/layout|model=/.test(SNIPPETS.python(spoken) + SNIPPETS.javascript(spoken)), "the server's choice");
  for (const write of Object.values(SNIPPETS)) {
    assert.ok(write(spoken).includes("hurry"));
    assert.match(write(spoken), /REALTIME_TTS_API_KEY/);
    assert.doesNotMatch(write({ ...spoken, key: false }), /API_KEY/);
  }
});
