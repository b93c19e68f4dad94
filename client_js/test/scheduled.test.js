// What stands in for the worklet, on a clock that the test moves.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Scheduled } from "../src/player-scheduled.js";

const RATE = 24_000;

/** A device that plays what was scheduled, sample for sample. */
class Context {
  sampleRate = RATE;
  currentTime = 0;
  state = "running";
  /** Seconds that go by while a block is made. */
  making = 0;
  /** @type {{at: number, samples: Float32Array, end: number}[]} */
  played = [];
  /** What the gain is to be, and how long from now. */
  ramps = [];

  createGain() {
    const { ramps } = this;
    const gain = {};
    for (const name of ["setValueAtTime", "linearRampToValueAtTime"]) {
      gain[name] = (value, at) => (ramps.push([value, at - this.currentTime]), gain);
    }
    return { gain, connect() {} };
  }

  createBuffer(channels, length, rate) {
    const samples = new Float32Array(length);
    return { duration: length / rate, getChannelData: () => samples };
  }

  createBufferSource() {
    const context = this;
    context.currentTime += context.making;
    let block;
    return {
      connect() {},
      start(from) {
        const at = Math.max(from, context.currentTime); // all of a block that is late is played
        const samples = this.buffer.getChannelData(0);
        context.played.push((block = { at, samples, end: at + samples.length / RATE }));
      },
      stop(at) {
        block.end = Math.min(block.end, Math.max(at, block.at));
      },
    };
  }

  /** What was heard by now. */
  get sound() {
    const out = new Float32Array(Math.round(this.currentTime * RATE));
    for (const { at, samples, end } of this.played) {
      const from = Math.round(at * RATE);
      const count = Math.min(samples.length, Math.round(end * RATE) - from, out.length - from);
      for (let i = 0; i < count; i++) out[from + i] += samples[i];
    }
    return out;
  }
}

/** A node, what it reports, and a clock that goes on by `ms`. */
function start(t) {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const context = new Context();
  const node = new Scheduled(context);
  const reports = [];
  node.port.onmessage = ({ data }) => reports.push({ ...data, at: context.currentTime });
  const pass = (ms) => {
    for (let i = 0; i < ms; i += 10) {
      context.currentTime += 0.01;
      t.mock.timers.tick(10);
    }
  };
  const give = (id, ms, level = 8000) =>
    node.port.postMessage({ id, samples: new Int16Array(ms * 24).fill(level).buffer });
  return { context, node, reports, pass, give };
}
const sounding = (sound) => sound.filter((sample) => sample !== 0).length;

test("sound that comes just in time is no underrun, and leaves no gap", (t) => {
  const { context, node, reports, pass, give } = start(t);
  node.port.postMessage({ id: 1, begin: true });
  give(1, 120);
  for (let i = 0; i < 40; i++) {
    give(1, 20);
    pass(20);
  }
  node.port.postMessage({ id: 1, end: true });
  pass(400);
  const last = reports.at(-1);
  assert.deepEqual([last.state, last.underruns, last.played], ["done", 0, 920 * 24]);
  assert.ok(reports.every(({ time, at }) => at >= time), "believed when it is heard");
  const { sound } = context;
  const [first, end] = [sound.findIndex(Boolean), sound.findLastIndex(Boolean)];
  assert.equal(end - first + 1, 920 * 24 - 1, "it fades out to nothing");
  assert.equal(sounding(sound), 920 * 24 - 1);
});

test("blocks that are made slowly, as a page's first are, do not sound together", (t) => {
  const { context, node, pass, give } = start(t);
  node.port.postMessage({ id: 1, begin: true });
  give(1, 1000);
  context.making = 0.015;
  pass(100);
  context.making = 0;
  pass(1500);
  const { played } = context;
  assert.ok(played.length >= 49);
  for (const [i, { at }] of played.entries()) {
    assert.ok(i === 0 || at >= played[i - 1].end - 1e-9, `${at} s, before ${played[i - 1]?.end} s`);
  }
});

test("a turn that runs dry goes on soon after more has come", (t) => {
  const { context, node, reports, pass, give } = start(t);
  node.port.postMessage({ id: 1, begin: true });
  give(1, 200);
  pass(1000);
  assert.deepEqual([reports.at(-1).state, reports.at(-1).underruns], ["waiting", 1]);
  const before = context.currentTime;
  give(1, 400);
  pass(100);
  const { sound } = context;
  const went = sound.findIndex((sample, i) => i > before * RATE && sample !== 0) / RATE - before;
  assert.ok(went < 0.07, `after ${went} s`);
});

test("what was heard of an interrupted turn is counted to the sample, and the next one is whole", (t) => {
  const { context, node, reports, pass, give } = start(t);
  for (const id of [1, 2]) {
    node.port.postMessage({ id, begin: true });
    give(id, 1000, id * 4000);
    node.port.postMessage({ id, end: true });
  }
  pass(500);
  assert.ok(context.played.at(-1).at > context.currentTime + 0.4, "it was ahead");
  node.port.postMessage({ id: 1, clear: true });
  const { cleared } = reports.at(-1);
  const fade = context.ramps.map(([value, at]) => [value, Math.round(at * 1000)]);
  assert.deepEqual(fade, [[1, 10], [0, 14], [1, 14]], "no click: it begins when the device gets there");
  pass(1200);
  const loud = (from, to) => context.sound.filter((x) => x > from / 32_768 && x < to / 32_768).length;
  assert.equal(cleared, 514 * 24 - Math.round(context.played[0].at * RATE));
  assert.ok(loud(3999, 4001) <= cleared && loud(3999, 4001) > cleared - 200, "but for its fade-in");
  assert.ok(loud(7999, 8001) > 990 * 24, "all of the second, but for its fades");
  assert.deepEqual([reports.at(-1).id, reports.at(-1).state, reports.at(-1).played], [2, "done", 24_000]);
});

test("of a turn that waited nothing was heard, and a context that is closed ends it all", (t) => {
  const { context, node, reports, pass, give } = start(t);
  for (const id of [1, 2]) {
    node.port.postMessage({ id, begin: true });
    give(id, 1000);
  }
  pass(300);
  const before = context.played.length;
  node.port.postMessage({ id: 2, clear: true });
  assert.deepEqual(reports.at(-1), { id: 2, cleared: 0, at: context.currentTime });
  pass(100);
  assert.ok(context.played.length >= before, "the first goes on");
  assert.ok(context.played.every(({ at, samples, end }) => end === at + samples.length / RATE));
  context.state = "closed";
  pass(20);
  const count = context.played.length;
  pass(1000);
  assert.equal(context.played.length, count);
});
