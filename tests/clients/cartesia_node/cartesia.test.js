import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, test } from "node:test";

import { lent, serve, skip, until, value } from "../server.js";

// By `require`: as a module the package does not find `ws`, and Node 20 has no WebSocket of its own.
const Cartesia = createRequire(import.meta.url)("@cartesia/cartesia-js").default;

const TEXT = "The museum is open until six.";
const LONG = Array(8).fill(TEXT).join(" ");
const RATE = 24_000;
const SETTINGS = {
  model_id: "sonic-3",
  voice: { mode: "id", id: "ava" },
  output_format: { container: "raw", encoding: "pcm_s16le", sample_rate: RATE },
};

// Sockets of this client are always wss, whatever the address says.
const tls = skip ? {} : await lent({ after }, "tls");
const plain = skip ? {} : await lent({ after }, "open");

function client(url = plain.url, options = {}) {
  return new Cartesia({ apiKey: "none", baseURL: url, maxRetries: 0, ...options });
}

async function connect(t) {
  const socket = await client(tls.url).tts.websocket({ ca: readFileSync(tls.ca) });
  t.after(() => socket.close());
  return socket;
}

/** Pieces as a language model cuts them: through words. */
function* deltas(text) {
  const sizes = [3, 1, 7, 2, 5];
  for (let at = 0, n = 0; at < text.length; n += 1) {
    const size = sizes[n % sizes.length];
    yield text.slice(at, at + size);
    at += size;
  }
}

async function all(events) {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

function seconds(events) {
  const bytes = events.filter(({ type }) => type === "chunk").map(({ audio }) => audio.length);
  return bytes.reduce((sum, size) => sum + size, 0) / 2 / RATE;
}

function assertSpoken(events, text = TEXT) {
  const length = seconds(events);
  assert.ok(length > 0.03 * text.length && length < 0.2 * text.length, `${length} s`);
}

test("deltas are spoken turn by turn", { skip }, async (t) => {
  const socket = await connect(t);
  for (let turn = 0; turn < 3; turn += 1) {
    const context = socket.context(SETTINGS);
    for (const transcript of deltas(TEXT)) await context.push({ transcript });
    await context.no_more_inputs();
    const events = await all(context.receive({ timeout: 60_000 }));
    assert.equal(events.at(-1).type, "done");
    assertSpoken(events);
  }
});

test("a barge-in, and the next turn", { skip }, async (t) => {
  const socket = await connect(t);
  const first = socket.context(SETTINGS);
  await first.push({ transcript: LONG });
  for await (const event of first.receive({ timeout: 60_000 })) {
    assert.equal(event.type, "chunk");
    break;
  }
  await first.cancel();
  const second = socket.context(SETTINGS);
  await second.push({ transcript: TEXT });
  await second.no_more_inputs();
  assertSpoken(await all(second.receive({ timeout: 60_000 })));
});

test("contexts in parallel do not mix", { skip }, async (t) => {
  const socket = await connect(t);
  const speak = async (text) => {
    const context = socket.context(SETTINGS);
    for (const transcript of deltas(text)) await context.push({ transcript });
    await context.no_more_inputs();
    return all(context.receive({ timeout: 60_000 }));
  };
  const [short, long] = await Promise.all([speak("Yes."), speak(`${TEXT} Do come in.`)]);
  assert.ok(seconds(short) > 0 && seconds(long) > 2 * seconds(short));
});

test("flushes have numbers, words have times", { skip }, async (t) => {
  const socket = await connect(t);
  const context = socket.context({ ...SETTINGS, add_timestamps: true });
  for (let count = 0; count < 2; count += 1) await context.push({ transcript: TEXT, flush: true });
  await context.no_more_inputs();
  const events = await all(context.receive({ timeout: 60_000 }));
  const flushes = events.filter(({ type }) => type === "flush_done");
  assert.deepEqual(flushes.map(({ flush_id }) => flush_id), [1, 2]);
  const times = events.filter(({ type }) => type === "timestamps");
  const words = times.flatMap(({ word_timestamps }) => word_timestamps.words);
  assert.deepEqual(words, `${TEXT} ${TEXT}`.split(" "));
  assert.ok(times.at(-1).word_timestamps.end.at(-1) <= seconds(events) + 1e-3);
});

test("a voice that is not there is an error of its context", { skip }, async (t) => {
  const socket = await connect(t);
  socket.on("error", () => {});
  const context = socket.context({ ...SETTINGS, voice: { mode: "id", id: "nobody" } });
  await context.push({ transcript: TEXT });
  await assert.rejects(all(context.receive({ timeout: 60_000 })), /ava/);
});

test("bytes, events and voices over HTTP", { skip }, async () => {
  const api = client();
  const answer = await api.tts.generate({ ...SETTINGS, transcript: TEXT });
  const samples = Buffer.from(await answer.arrayBuffer());
  assertSpoken([{ type: "chunk", audio: samples }]);
  const events = await all(await api.tts.generateSSE({ ...SETTINGS, transcript: TEXT }));
  assert.equal(events.at(-1).type, "done");
  const voices = await all(api.voices.list({ limit: 2 }));
  for (const name of ["ava", "ray"]) assert.ok(voices.some(({ id }) => id === name), name);
});

test("who hangs up frees the place", { skip }, async () => {
  const closed = await value(plain.url, 'tts_turns_total{reason="closed"}');
  const answer = await client().tts.generate({ ...SETTINGS, transcript: LONG });
  const reader = answer.body.getReader();
  await reader.read();
  await reader.cancel();
  await until(plain.url, "tts_sessions", 0);
  assert.equal(await value(plain.url, 'tts_turns_total{reason="closed"}'), closed + 1);
});

test("a wrong key is an authentication error", { skip }, async (t) => {
  const keyed = await serve(t, "--engine", "fake", "--api-key", "a-key-for-the-tests");
  const ask = (apiKey) => client(keyed.url, { apiKey }).voices.get("alto");
  await assert.rejects(ask("wrong"), (error) => error instanceof Cartesia.AuthenticationError);
  assert.equal((await ask("a-key-for-the-tests")).id, "alto");
});

test("a server that is full says so", { skip }, async (t) => {
  const full = await serve(t, "--engine", "fake", "--max-sessions", "1");
  const slow = { ...SETTINGS, voice: "alto", transcript: Array(20).fill(LONG).join(" ") };
  const first = await client(full.url).tts.generate(slow);
  const reader = first.body.getReader();
  await reader.read();
  const second = client(full.url).tts.generate(slow);
  await assert.rejects(second, (error) => error instanceof Cartesia.InternalServerError);
  await reader.cancel();
});
