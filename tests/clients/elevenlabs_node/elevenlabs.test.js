import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ElevenLabsClient, ElevenLabsError } from "@elevenlabs/elevenlabs-js";

import { lent, serve, skip, until, value } from "../server.js";

const TEXT = "The museum is open until six.";
const LONG = Array(8).fill(TEXT).join(" ");
const RATE = 24_000;
const ASKED = { text: TEXT, modelId: "eleven_flash_v2_5", outputFormat: "pcm_24000" };

const plain = skip ? {} : await lent({ after }, "open");

function client(url = plain.url, apiKey = "none") {
  return new ElevenLabsClient({ apiKey, baseUrl: url, maxRetries: 0 });
}

async function bytes(stream) {
  const found = [];
  for await (const piece of stream) found.push(piece);
  return Buffer.concat(found);
}

function assertSpoken(length, text = TEXT) {
  assert.ok(length > 0.03 * text.length && length < 0.2 * text.length, `${length} s`);
}

test("speech as it is made, and in one", { skip }, async () => {
  const api = client();
  for (let turn = 0; turn < 3; turn += 1) {
    const sound = await bytes(await api.textToSpeech.stream("ava", ASKED));
    assertSpoken(sound.length / 2 / RATE);
  }
  assertSpoken((await bytes(await api.textToSpeech.convert("ava", ASKED))).length / 2 / RATE);
});

test("formats", { skip }, async () => {
  const formats = { pcm_16000: 32_000, ulaw_8000: 8_000, mp3_44100_128: 16_000 };
  for (const [outputFormat, perSecond] of Object.entries(formats)) {
    const sound = await bytes(await client().textToSpeech.stream("ava", { ...ASKED, outputFormat }));
    assertSpoken(sound.length / perSecond);
  }
});

test("texts in parallel do not mix", { skip }, async () => {
  const speak = async (text) => bytes(await client().textToSpeech.stream("ava", { ...ASKED, text }));
  const [short, long] = await Promise.all([speak("Yes."), speak(`${TEXT} Do come in.`)]);
  assert.ok(short.length > 0 && long.length > 2 * short.length);
});

test("characters have times", { skip }, async () => {
  const api = client().textToSpeech;
  const whole = await api.convertWithTimestamps("ava", ASKED);
  assertSpoken(Buffer.from(whole.audioBase64, "base64").length / 2 / RATE);
  assert.equal(whole.alignment.characters.join(""), TEXT);
  const characters = [];
  let size = 0;
  for await (const piece of await api.streamWithTimestamps("ava", ASKED)) {
    size += Buffer.from(piece.audioBase64, "base64").length;
    characters.push(...(piece.alignment?.characters ?? []));
  }
  assertSpoken(size / 2 / RATE);
  assert.equal(characters.join(""), TEXT);
});

test("voices and models", { skip }, async () => {
  const api = client();
  const all = (await api.voices.getAll()).voices.map(({ voiceId }) => voiceId);
  const found = (await api.voices.search({ pageSize: 50 })).voices.map(({ voiceId }) => voiceId);
  for (const name of ["ava", "ray"]) assert.ok(all.includes(name) && found.includes(name));
  assert.equal((await api.voices.get("ray")).name, "ray");
  assert.ok((await api.models.list()).every(({ canDoTextToSpeech }) => canDoTextToSpeech));
});

test("who hangs up frees the place", { skip }, async () => {
  const closed = await value(plain.url, 'tts_turns_total{reason="closed"}');
  const stream = await client().textToSpeech.stream("ava", { ...ASKED, text: LONG });
  const reader = stream.getReader();
  await reader.read();
  await reader.cancel();
  await until(plain.url, "tts_sessions", 0);
  assert.equal(await value(plain.url, 'tts_turns_total{reason="closed"}'), closed + 1);
});

test("a voice that is not there", { skip }, async () => {
  await assert.rejects(client().textToSpeech.stream("nobody", ASKED), (error) => {
    assert.ok(error instanceof ElevenLabsError && error.statusCode === 404);
    assert.match(error.body.detail.message, /ava/);
    return true;
  });
});

test("a wrong key is refused", { skip }, async (t) => {
  const keyed = await serve(t, "--engine", "fake", "--api-key", "a-key-for-the-tests");
  const refused = (error) => error instanceof ElevenLabsError && error.statusCode === 401;
  await assert.rejects(client(keyed.url, "wrong").voices.getAll(), refused);
  await assert.rejects(client(keyed.url, "wrong").textToSpeech.stream("alto", ASKED), refused);
  const { voices } = await client(keyed.url, "a-key-for-the-tests").voices.getAll();
  assert.ok(voices.length > 0);
});

test("a server that is full says so", { skip }, async (t) => {
  const full = await serve(t, "--engine", "fake", "--max-sessions", "1");
  const slow = { ...ASKED, text: Array(20).fill(LONG).join(" ") };
  const first = await client(full.url).textToSpeech.stream("alto", slow);
  const reader = first.getReader();
  await reader.read();
  const refused = (error) => error instanceof ElevenLabsError && error.statusCode === 503;
  await assert.rejects(client(full.url).textToSpeech.stream("alto", slow), refused);
  await reader.cancel();
});
