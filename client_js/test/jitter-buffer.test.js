import assert from "node:assert/strict";
import { test } from "node:test";

import { worklet } from "../src/player-worklet.js";

const { JitterBuffer, Refill } = worklet();

const MS = 24; // samples
const FULL = 16_384; // half of the loudest
const tone = (ms) => new Int16Array(ms * MS).fill(FULL);

/** What comes out in so many milliseconds, asked for in pieces as a device asks. */
function listen(buffer, ms, piece = 128) {
  const heard = new Float32Array(ms * MS).fill(9);
  for (let at = 0; at < heard.length; at += piece) buffer.pull(heard.subarray(at, at + piece));
  return heard;
}
const sounding = (heard) => heard.filter((sample) => sample !== 0).length;
function steepest(heard) {
  return heard.reduce((most, x, i) => Math.max(most, Math.abs(x - (heard[i - 1] ?? 0))), 0);
}

test("it waits for 100 ms of sound, then plays every sample once", () => {
  const buffer = new JitterBuffer();
  buffer.push(tone(99));
  assert.equal(sounding(listen(buffer, 16)), 0);
  assert.equal(buffer.state, "waiting");
  buffer.push(tone(50));
  buffer.ended = true;
  const heard = listen(buffer, 200);
  assert.equal(buffer.state, "done");
  assert.equal(buffer.played, 149 * MS);
  assert.equal(buffer.underruns, 0);
  assert.equal(sounding(heard.subarray(149 * MS)), 0);
  assert.ok(sounding(heard) >= 149 * MS - 2);
  assert.equal(heard[75 * MS], 0.5);
});

test("a turn shorter than that is played when it ends", () => {
  const buffer = new JitterBuffer();
  buffer.push(tone(30));
  assert.equal(sounding(listen(buffer, 50)), 0);
  buffer.ended = true;
  listen(buffer, 50);
  assert.deepEqual([buffer.played, buffer.state, buffer.underruns], [30 * MS, "done", 0]);
});

test("what waits for its text is not held back for longer than 100 ms", () => {
  const buffer = new JitterBuffer();
  listen(buffer, 500);
  buffer.push(tone(80));
  assert.equal(sounding(listen(buffer, 96)), 0);
  listen(buffer, 20);
  assert.ok(buffer.played > 0);
});

test("samples keep their order and their value, however they are cut", () => {
  const buffer = new JitterBuffer();
  const ramp = Int16Array.from({ length: 90_000 }, (_, i) => (i % 30_000) - 15_000);
  const heard = [];
  for (let at = 0, size = 1; at < ramp.length; at += size, size = (size * 7 + 3) % 4001) {
    buffer.push(ramp.subarray(at, at + size));
    const out = new Float32Array(((at * 13) % 300) + 1);
    const before = buffer.played;
    buffer.pull(out);
    heard.push(...out.subarray(0, buffer.played - before));
  }
  buffer.ended = true;
  const rest = new Float32Array(buffer.buffered);
  buffer.pull(rest);
  heard.push(...rest);
  assert.equal(heard.length, ramp.length);
  assert.equal(buffer.underruns, 0, "else fades would be in it");
  for (let i = 96; i < ramp.length - 96; i++) assert.equal(heard[i], ramp[i] / 32_768, `at ${i}`);
});

test("running dry is one underrun, fades, and goes on at a higher fill", () => {
  const buffer = new JitterBuffer();
  buffer.push(tone(120));
  const heard = [...listen(buffer, 200)];
  assert.deepEqual([buffer.state, buffer.underruns, buffer.played], ["waiting", 1, 120 * MS]);
  buffer.push(tone(140));
  heard.push(...listen(buffer, 16));
  assert.equal(buffer.played, 120 * MS, "150 ms are needed now");
  buffer.push(tone(20));
  heard.push(...listen(buffer, 100));
  assert.ok(buffer.played > 200 * MS);
  assert.ok(steepest(heard) <= 0.5 / 96 + 1e-6, `a click of ${steepest(heard)}`);
});

test("the fill to go on at grows to 400 ms, and decays while all is well", () => {
  const refill = new Refill();
  const levels = [];
  for (let i = 0; i < 5; i++) {
    refill.grow();
    levels.push(refill.samples / MS);
  }
  assert.deepEqual(levels, [150, 225, 337.5, 400, 400]);
  refill.decay(9.9 * 24_000);
  assert.equal(refill.samples, 400 * MS);
  refill.decay(0.2 * 24_000);
  assert.equal(Math.round(refill.samples / MS), 267);
  for (let i = 0; i < 10; i++) refill.decay(240_000);
  assert.equal(refill.samples, 100 * MS);
});

test("sound that comes in the last moment is no underrun", () => {
  const buffer = new JitterBuffer();
  buffer.push(tone(101));
  const heard = [...listen(buffer, 99, 24)]; // in the fade-out already
  buffer.push(tone(100));
  heard.push(...listen(buffer, 90, 24));
  assert.equal(buffer.underruns, 0);
  assert.ok(steepest(heard) <= 0.5 / 96 + 1e-6);
});

test("clearing tells exactly what will have been heard, fades within 4 ms, and is silence", () => {
  const buffer = new JitterBuffer();
  buffer.push(tone(500));
  const heard = [...listen(buffer, 160)];
  const told = buffer.clear();
  heard.push(...listen(buffer, 100));
  assert.deepEqual([buffer.played, buffer.state, buffer.underruns], [told, "done", 0]);
  assert.equal(told, 160 * MS + 96);
  assert.equal(sounding(heard.slice(told)), 0);
  assert.ok(steepest(heard) <= 0.5 / 96 + 1e-6);
  buffer.push(tone(100));
  assert.equal(buffer.buffered, 0, "nothing gets in any more");
});

test("clearing before a sound is heard leaves none", () => {
  const buffer = new JitterBuffer();
  buffer.push(tone(90));
  assert.equal(buffer.clear(), 0);
  assert.equal(sounding(listen(buffer, 50)), 0);
  assert.equal(buffer.state, "done");
});
