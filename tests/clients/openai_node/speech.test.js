import assert from "node:assert/strict";
import { after, test } from "node:test";

import OpenAI from "openai";

import { lent, serve, skip, until, value } from "../server.js";

const TEXT = "The museum is open until six.";
const LONG = Array(12).fill(TEXT).join(" ");
const BEGINNINGS = { wav: "RIFF", flac: "fLaC", opus: "OggS", mp3: "\xff", aac: "\xff" };
const KEY = "a-key-for-the-tests";

const { url } = skip ? {} : await lent({ after }, "open");

function client(at = url, options = {}) {
  return new OpenAI({ baseURL: `${at}/v1`, apiKey: "none", maxRetries: 0, ...options });
}

const asked = (options) => ({
  model: "tts-1",
  voice: "nova",
  input: TEXT,
  response_format: "pcm",
  seed: 11,
  ...options,
});

async function speech(options, api = client()) {
  const answer = await api.audio.speech.create(asked(options));
  return Buffer.from(await answer.arrayBuffer());
}

async function refusal(...request) {
  return speech(...request).then(
    () => assert.fail("it was not refused"),
    (error) => error,
  );
}

test("speech streams while it is made", { skip }, async () => {
  const answer = await client().audio.speech.create(asked({ input: LONG, lead_ms: 500 }));
  assert.match(answer.headers.get("content-type"), /^audio\//);
  const reader = answer.body.getReader();
  const { value: piece } = await reader.read();
  assert.ok(piece.length > 0);
  assert.equal(await value(url, "tts_open_turns"), 1, "the first sound came after the last");
  const closed = await value(url, 'tts_turns_total{reason="closed"}');
  await reader.cancel();
  await until(url, "tts_sessions", 0);
  await until(url, 'tts_turns_total{reason="closed"}', closed + 1);
});

test("wav is pcm with a header, and other formats begin as they should", { skip }, async () => {
  const samples = await speech();
  assert.ok(samples.length > 48_000 && samples.some((byte) => byte !== 0));
  for (const [format, beginning] of Object.entries(BEGINNINGS)) {
    const sound = await speech({ response_format: format });
    assert.equal(sound.toString("latin1", 0, beginning.length), beginning, format);
    if (format === "wav") assert.deepEqual(sound.subarray(44), samples);
    else assert.ok(sound.length > 5_000 && sound.length < samples.length, format);
  }
});

test("events carry the speech and what it took", { skip }, async () => {
  const answer = await client().audio.speech.create(asked({ stream_format: "sse" }));
  const lines = (await answer.text()).split("\n").filter(Boolean);
  const events = lines.map((line) => JSON.parse(line.replace(/^data: /, "")));
  const last = events.pop();
  const sound = Buffer.concat(events.map(({ audio }) => Buffer.from(audio, "base64")));
  assert.deepEqual(sound, await speech());
  assert.equal(last.type, "speech.audio.done");
  assert.ok(last.usage.total_tokens > 0);
});

test("three at once speak as each would alone", { skip }, async () => {
  const [first, other, again] = await Promise.all([speech(), speech({ voice: "ash" }), speech()]);
  const alone = await speech();
  assert.deepEqual(first, alone);
  assert.deepEqual(again, alone);
  assert.notDeepEqual(other, alone);
});

test("a wrong key is an authentication error", { skip }, async (t) => {
  const keyed = await serve(t, "--engine", "fake", "--api-key", KEY);
  const error = await refusal({}, client(keyed.url, { apiKey: "sk-wrong-one" }));
  assert.ok(error instanceof OpenAI.AuthenticationError, error);
  assert.equal(error.code, "invalid_api_key");
  assert.equal((await client(keyed.url, { apiKey: KEY }).models.list()).data.length, 1);
});

test("an unknown voice is told the known ones", { skip }, async () => {
  const error = await refusal({ voice: "rachel" });
  assert.ok(error instanceof OpenAI.BadRequestError, error);
  assert.match(error.message, /ava, ray/);
});

test("a server that is full says when to come back", { skip }, async (t) => {
  const full = await serve(t, "--engine", "fake", "--max-sessions", "1");
  const first = await client(full.url).audio.speech.create(
    asked({ voice: "alto", input: LONG, lead_ms: 500 }),
  );
  const reader = first.body.getReader();
  await reader.read();
  const error = await refusal({ voice: "alto" }, client(full.url));
  assert.ok(error instanceof OpenAI.InternalServerError, error);
  assert.ok(Number(error.headers.get("retry-after")) >= 1);
  await reader.cancel();
});
