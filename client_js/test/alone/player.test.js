import assert from "node:assert/strict";
import { test } from "node:test";

import { server, skip, stage } from "../browser/harness.js";

const TEXT = "The tide is coming in, slowly but surely, and the boats are all afloat.";
const HERTZ = { soprano: 660, alto: 330 };

for (const [voice, rate, scheduled = false] of [
  ["alto", undefined],
  ["soprano", 48_000],
  ["alto", 44_100],
  ["soprano", 44_100, true],
]) {
  const where = (rate ? `resampled to ${rate} Hz` : "at 24 kHz") + (scheduled ? ", without a worklet" : "");
  test(`every sample is played, at the right pitch, ${where}`, { skip }, async (t) => {
    // Without a worklet a page that gets no time for a tenth of a second leaves a hole.
    let tries = scheduled ? 3 : 1;
    let found;
    do {
      found = await hearOne(t, { settings: { voice }, rate, scheduled });
      t.diagnostic(told(found));
    } while (--tries && !unbroken(found));
    assert.equal(found.rate, rate ?? 24_000);
    assert.equal(found.reason, "complete");
    assert.ok(found.samples > 24_000);
    assert.equal(Math.round(found.playedSeconds * 24_000), found.samples);
    assert.equal(found.underruns, 0);
    assert.deepEqual([found.leadSeconds, found.bufferedSeconds, found.state], [0, 0, "done"]);
    assert.ok(Math.abs(found.hertz / HERTZ[voice] - 1) < 0.005, `${found.hertz} Hz`);
    assert.ok(unbroken(found), told(found));
  });
}

/** What is heard of a short turn, and the steepest slope that its tone should have. */
async function hearOne(t, options) {
  const page = await stage(t, await server(), options);
  const found = await page.evaluate(
    async (text) => {
      const turn = tts.speak(text);
      const playback = player.play(turn);
      const result = await playback.done;
      return {
        ...result,
        ...playback.stats(),
        ...(await ear()),
        rate: player.context.sampleRate,
      };
    },
    TEXT.slice(0, 30),
  );
  const slope = (2 * Math.PI * HERTZ[options.settings.voice] * found.loudest) / found.rate;
  return { ...found, slope };
}

/** Without a hole and without a click. */
function unbroken({ seconds, playedSeconds, steepest, slope }) {
  return Math.abs(seconds - playedSeconds) < 0.01 && steepest < slope * 1.1;
}

const told = ({ seconds, playedSeconds, steepest, slope }) =>
  `${seconds} s of sound, ${playedSeconds} s played; a step of ${steepest}, the tone's steepest is ${slope}`;

test("turns are played one after the other, and the server hears how far", { skip }, async (t) => {
  const url = await server();
  const page = await stage(t, url);
  const found = await page.evaluate(async () => {
    const events = [];
    for (const type of ["state", "underrun", "packet"]) {
      player.addEventListener(type, ({ detail }) => {
        if (type !== "packet") events.push([detail.playback.turn.turnId, detail.state ?? type]);
      });
    }
    const told = [];
    const [a, b] = ["One two three.", "Four five six."].map((text) => tts.speak(text));
    for (const turn of [a, b]) {
      const { played } = turn;
      turn.played = (at) => (told.push([turn.turnId, at.playedSamples]), played.call(turn, at));
    }
    const playbacks = [a, b].map((turn) => player.play(turn));
    const [first, second] = await Promise.all(playbacks.map(({ done }) => done));
    return { events, told, samples: [first.samples, second.samples] };
  });
  assert.deepEqual(found.events, [
    ["turn-1", "playing"],
    ["turn-1", "done"],
    ["turn-2", "playing"],
    ["turn-2", "done"],
  ]);
  const last = (name) => found.told.filter(([id]) => id === name).at(-1)[1];
  assert.deepEqual([last("turn-1"), last("turn-2")], found.samples);
  assert.ok(found.told.length >= 4);
});

for (const scheduled of [false, true]) {
  const how = scheduled ? ", without a worklet, too" : "";
  test(`a barge-in is silence at once, and its report is exact${how}`, { skip }, (t) => bargeIn(t, scheduled));
}

async function bargeIn(t, scheduled) {
  const url = await server();
  const page = await stage(t, url, { scheduled });
  const found = await page.evaluate(async (text) => {
    const sent = [];
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (data) {
      sent.push(JSON.parse(data));
      return send.call(this, data);
    };
    const turn = tts.speak(text);
    const waits = tts.speak("Never heard.");
    const playback = player.play(turn);
    const other = player.play(waits);
    await untilHeard(playback, 1);
    const before = playback.stats();
    const at = player.context.currentTime;
    const started = performance.now();
    const report = await player.bargeIn();
    const answeredMs = performance.now() - started;
    await Promise.all([playback.done, other.done]);
    await sleep(300);
    const silentMs = ((await ear()).last - at) * 1000;
    const { outputLatency, baseLatency } = player.context;
    const told = sent.filter(({ type }) => type === "interrupt").map((m) => m.played_samples);
    const again = await player.bargeIn();
    const heard = await ear();
    return { before, report, answeredMs, silentMs, told, again, heard, outputLatency, baseLatency };
  }, TEXT);
  const { report, told, heard, before } = found;
  t.diagnostic(`interrupt to silence: ${found.silentMs.toFixed(1)} ms at the device's buffer`);
  t.diagnostic(`report after ${found.answeredMs.toFixed(1)} ms`);
  assert.ok(found.silentMs < 50, `${found.silentMs} ms`);
  assert.equal(told[0], 0, "what waited was stopped first");
  const samples = told[1];
  assert.ok(Math.abs(report.playedMs * 24 - samples) < 3, `${report.playedMs} ms, ${samples} told`);
  // Without a worklet a busy machine can be late with a block: what follows is heard later, all of it.
  const sounded = scheduled ? heard.sounding : heard.seconds * 24_000;
  assert.ok(Math.abs(sounded - samples) < 60, `${samples} told, ${sounded} heard`);
  assert.equal(report.textSpoken + report.textRemaining, TEXT);
  assert.ok(report.textSpoken.length > 3 && report.textRemaining.length > 10);
  assert.ok(before.leadSeconds > 0.5, "there was much to drop");
  assert.ok(before.heardSeconds <= before.playedSeconds - found.outputLatency);
  assert.equal(found.again, null, "nothing plays any more");
  // … which may click; scheduled.test.js looks for that.
  const slope = (2 * Math.PI * 220 * heard.loudest) / 24_000;
  assert.ok(scheduled || heard.steepest < slope * 1.15, `a click of ${heard.steepest}`);
}

test("a turn that is interrupted elsewhere falls silent as well", { skip }, async (t) => {
  const url = await server();
  const page = await stage(t, url);
  const [reason, played, sounding] = await page.evaluate(async (text) => {
    const turn = tts.speak(text);
    const playback = player.play(turn);
    await untilHeard(playback, 0.3);
    await turn.interrupt();
    const { reason } = await playback.done;
    const played = playback.stats().playedSeconds;
    await sleep(200);
    return [reason, played, (await ear()).sounding / 24_000];
  }, TEXT);
  assert.equal(reason, "interrupted");
  assert.ok(played > 0.1 && played < 1.5, `${played} s`);
  assert.ok(Math.abs(sounding - played) < 0.02, `${sounding} s of ${played} s`);
});

test("a stall is one underrun, without a click, and then it fills further", { skip }, async (t) => {
  const url = await server();
  const page = await stage(t, url, { settings: { leadMs: 30_000 } });
  // Sound comes when the player has reached a state, not at a time: a machine with other work has
  // no stalls but this one.
  const found = await page.evaluate(async (text) => {
    const { held } = network;
    const seen = [];
    const began = [];
    const playback = new Promise((resolve) => {
      player.addEventListener("underrun", ({ detail }) => {
        seen.push(detail.underruns);
        resolve(detail.playback);
      });
      player.addEventListener("state", ({ detail: { state, playback } }) => {
        if (state === "playing") began.push(playback.stats().bufferedSeconds);
      });
    });
    network.stall();
    const { done } = player.play(tts.speak(text));
    while (!held.some(({ event: { data } }) => /"turn.done"/.test(data))) await sleep(5);
    const seconds = ({ event: { data } }) => (data.byteLength ?? 0) / 48_000;
    let first = 0;
    for (let sum = 0; sum < 0.6; first++) sum += seconds(held[first]);
    network.deliver(first);
    const dry = (await playback).stats();
    const since = player.context.currentTime;
    while (player.context.currentTime < since + 0.35) await sleep(5);
    while (began.length < 2) {
      network.deliver(1);
      await sleep(10);
    }
    network.resume();
    const { samples } = await done;
    return { seen, dry, began, samples, ...(await playback).stats(), ...(await ear()) };
  }, TEXT);
  assert.deepEqual([found.dry.state, found.dry.underruns], ["waiting", 1]);
  assert.deepEqual(found.seen, [1]);
  assert.equal(found.underruns, 1);
  assert.equal(Math.round(found.playedSeconds * 24_000), found.samples, "nothing is lost");
  assert.ok(found.began[1] >= 0.14, `went on with ${found.began[1]} s`);
  assert.ok(found.last - found.first > found.playedSeconds + 0.3, "the gap was heard");
  const slope = (2 * Math.PI * 220 * found.loudest) / 24_000;
  assert.ok(found.steepest < slope * 1.15, `a click of ${found.steepest}`);
});
