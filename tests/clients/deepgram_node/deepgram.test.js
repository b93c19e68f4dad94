import assert from "node:assert/strict";
import { after, test } from "node:test";

import { DeepgramClient } from "@deepgram/sdk";

import { lent, serve, skip, until, value } from "../server.js";

const TEXT = "The museum is open until six.";
const LONG = Array(8).fill(TEXT).join(" ");
const RATE = 24_000;
const AURA = { model: "aura-2-ava-en", encoding: "linear16", sample_rate: RATE };
const FLUX = { ...AURA, model: "flux-ava-en" };

const plain = skip ? {} : await lent({ after }, "open");

function client(url = plain.url, apiKey = "none") {
  const environment = { base: url, production: url.replace("http", "ws"), agent: "", agentRest: "" };
  return new DeepgramClient({ apiKey, environment, maxRetries: 0 });
}

/** A socket that is open; `until(type)` gives all messages up to the first of this type. */
async function connect(t, version, asked) {
  const socket = await version.connect({ ...asked, reconnectAttempts: 0 });
  const seen = [];
  let wake = () => {};
  socket.on("message", (message) => {
    seen.push(message);
    wake();
  });
  socket.connect();
  t.after(() => socket.close());
  await socket.waitForOpen();
  const next = async (type) => {
    const found = [];
    while (!found.length || typeOf(found.at(-1)) !== type) {
      while (!seen.length) await new Promise((resolve) => (wake = resolve));
      found.push(seen.shift());
    }
    return found;
  };
  return { socket, until: next };
}

function typeOf(message) {
  return message instanceof Blob ? "sound" : message.type;
}

function seconds(messages) {
  const blobs = messages.filter((message) => message instanceof Blob);
  return blobs.reduce((sum, blob) => sum + blob.size, 0) / 2 / RATE;
}

function assertSpoken(messages, text = TEXT) {
  const length = seconds(messages);
  assert.ok(length > 0.03 * text.length && length < 0.2 * text.length, `${length} s`);
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

test("deltas are spoken turn by turn", { skip }, async (t) => {
  const { socket, until } = await connect(t, client().speak.v1, AURA);
  await until("Metadata");
  for (let turn = 0; turn < 3; turn += 1) {
    for (const text of deltas(TEXT)) socket.sendText({ type: "Speak", text });
    socket.sendFlush({ type: "Flush" });
    const seen = await until("Flushed");
    assert.equal(seen.at(-1).sequence_id, turn);
    assertSpoken(seen);
  }
});

test("a barge-in, and the next turn", { skip }, async (t) => {
  const { socket, until } = await connect(t, client().speak.v1, AURA);
  socket.sendText({ type: "Speak", text: LONG });
  await until("sound");
  socket.sendClear({ type: "Clear" });
  await until("Cleared");
  socket.sendText({ type: "Speak", text: TEXT });
  socket.sendFlush({ type: "Flush" });
  assertSpoken(await until("Flushed"));
});

test("turns of Flux, and what was heard of one", { skip }, async (t) => {
  const { socket, until } = await connect(t, client().speak.v2, FLUX);
  await until("Connected");
  for (const text of deltas(TEXT)) socket.sendSpeak({ type: "Speak", text });
  socket.sendFlush({ type: "Flush" });
  const seen = await until("SpeechMetadata");
  assert.equal(typeOf(seen[0]), "SpeechStarted");
  assertSpoken(seen);
  const before = seen.at(-1).audio_duration_ms;
  socket.sendSpeak({ type: "Speak", text: LONG });
  let length = 0;
  while (length < 2) length += seconds(await until("sound"));
  const value = before + 1_500;
  socket.sendInterrupt({ type: "Interrupt", playback_offset: { type: "time_ms", value } });
  const report = (await until("SpeechInterrupted")).at(-1);
  assert.equal(report.text_spoken + report.text_remaining, LONG);
  assert.ok(report.text_spoken.startsWith("The museum") && report.text_spoken.length < 60);
  socket.sendClose({ type: "Close" });
  await until("SessionMetadata");
});

test("speech over HTTP", { skip }, async () => {
  const asked = { text: TEXT, model: "flux-ava-en", encoding: "linear16" };
  for (const { audio } of [client().speak.v1, client().speak.v2]) {
    const answer = await audio.generate({ ...asked, container: "none", sample_rate: RATE });
    assertSpoken([new Blob([await answer.arrayBuffer()])]);
  }
});

test("who hangs up frees the place", { skip }, async (t) => {
  const closed = await value(plain.url, 'tts_turns_total{reason="closed"}');
  const { socket, until: wait } = await connect(t, client().speak.v1, AURA);
  socket.sendText({ type: "Speak", text: LONG });
  await wait("sound");
  socket.close();
  await until(plain.url, "tts_open_turns", 0);
  assert.equal(await value(plain.url, 'tts_turns_total{reason="closed"}'), closed + 1);
});

test("a voice that is not there, a wrong key", { skip }, async (t) => {
  const audio = client().speak.v1.audio;
  await assert.rejects(audio.generate({ text: TEXT, model: "nobody" }), /ava/);
  const keyed = await serve(t, "--engine", "fake", "--api-key", "a-key-for-the-tests");
  const ask = (key) => client(keyed.url, key).speak.v1.audio.generate({ text: TEXT });
  await assert.rejects(ask("wrong"), (error) => error.statusCode === 401);
  assert.ok((await (await ask("a-key-for-the-tests")).arrayBuffer()).byteLength > 1_000);
  await assert.rejects(connect(t, client(keyed.url, "wrong").speak.v2, FLUX));
});
