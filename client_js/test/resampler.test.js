import assert from "node:assert/strict";
import { test } from "node:test";

import { worklet } from "../src/player-worklet.js";

const { Resampler } = worklet();

/** A tone at one rate, heard at another, in pieces. */
function resample(hertz, from, to, seconds, piece) {
  const resampler = new Resampler(from, to);
  let at = 0;
  const tone = {
    pull(block) {
      for (let j = 0; j < block.length; j++) block[j] = Math.sin((2 * Math.PI * hertz * at++) / from);
    },
  };
  const out = new Float32Array(Math.round(seconds * to));
  for (let i = 0; i < out.length; i += piece) {
    resampler.fill(out.subarray(i, i + piece), tone);
  }
  return { out, read: at };
}

/** What is left of `out` when the tone is taken away, in dB below it. */
function impurity(out, hertz, rate) {
  const steady = out.subarray(200);
  let [a, b] = [0, 0];
  const angle = (i) => (2 * Math.PI * hertz * i) / rate;
  steady.forEach((x, i) => ((a += x * Math.sin(angle(i))), (b += x * Math.cos(angle(i)))));
  [a, b] = [(2 * a) / steady.length, (2 * b) / steady.length];
  let rest = 0;
  steady.forEach((x, i) => (rest += (x - a * Math.sin(angle(i)) - b * Math.cos(angle(i))) ** 2));
  return { amplitude: Math.hypot(a, b), dB: 10 * Math.log10((2 * rest) / steady.length) };
}

for (const rate of [44_100, 48_000, 96_000, 24_000]) {
  for (const hertz of [110, 1000, 6000]) {
    test(`${hertz} Hz stays ${hertz} Hz and clean at ${rate} Hz`, () => {
      const { out } = resample(hertz, 24_000, rate, 1, 128);
      const { amplitude, dB } = impurity(out, hertz, rate);
      assert.ok(Math.abs(amplitude - 1) < 0.02, `amplitude ${amplitude}`);
      assert.ok(dB < -50, `${dB} dB`);
    });
  }
}

test("what a slow device cannot play is left out", () => {
  const { out } = resample(7000, 24_000, 8_000, 1, 128);
  assert.ok(Math.max(...out.subarray(200)) < 0.05);
});

test("however it is cut, the samples are the same", () => {
  const whole = resample(440, 24_000, 44_100, 0.5, 22_050);
  for (const piece of [1, 7, 128, 1000]) {
    const cut = resample(440, 24_000, 44_100, 0.5, piece);
    const worst = cut.out.reduce((most, x, i) => Math.max(most, Math.abs(x - whole.out[i])), 0);
    assert.ok(worst < 2e-3, `${worst} in pieces of ${piece}`); // one step of the table
  }
});

test("it reads as many samples as it plays, in seconds", () => {
  for (const rate of [8_000, 44_100, 48_000]) {
    assert.ok(Math.abs(resample(100, 24_000, rate, 2, 128).read - 48_000) <= 3);
  }
});

/** The player's processor on a device of that rate, and what it plays in so many blocks. */
function device(rate) {
  let made;
  worklet({
    sampleRate: rate,
    currentTime: 0,
    AudioWorkletProcessor: class {
      port = { postMessage() {} };
    },
    registerProcessor: (_, Processor) => (made = new Processor()),
  });
  const say = (order) => made.port.onmessage({ data: order });
  const play = (blocks) =>
    Array.from({ length: blocks }, () => {
      const out = new Float32Array(128);
      made.process([], [[out]]);
      return [...out];
    }).flat();
  return { say, play };
}

for (const rate of [44_100, 48_000, 96_000, 192_000]) {
  test(`a turn fades out to nothing at ${rate} Hz, and leaves nothing to the next`, () => {
    for (let length = 2400; length < 2464; length += 4) {
      const { say, play } = device(rate);
      say({ id: 1, begin: true });
      say({ id: 1, samples: new Int16Array(length).fill(20_000).buffer });
      say({ id: 1, end: true });
      const heard = play(Math.ceil(rate / 128 / 4)); // a quarter of a second
      const steps = heard.map((x, i) => Math.abs(x - (heard[i - 1] ?? 0)));
      const most = 1.4 * (0.61 / (0.004 * rate)); // the slope of the fade, and rounded corners
      assert.ok(Math.max(...steps) < most, `${length} samples: a step of ${Math.max(...steps)}`);
      say({ id: 2, begin: true });
      say({ id: 2, end: true });
      assert.ok(play(2).every((x) => Math.abs(x) < 1e-4), `${length} samples: some are left`);
    }
  });
}

test("players that share a context register one processor", () => {
  const names = [];
  const scope = {
    sampleRate: 24_000,
    AudioWorkletProcessor: class {},
    registerProcessor: (name) => void names.push(name), // a second time, it throws
  };
  worklet(scope);
  worklet(scope);
  assert.deepEqual(names, ["realtime-tts-player"]);
});
