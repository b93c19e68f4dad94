import assert from "node:assert/strict";
import { after, test } from "node:test";

import { initializeLogger } from "@livekit/agents";
import * as cartesia from "@livekit/agents-plugin-cartesia";
import * as deepgram from "@livekit/agents-plugin-deepgram";
import * as elevenlabs from "@livekit/agents-plugin-elevenlabs";
import * as openai from "@livekit/agents-plugin-openai";

import { lent, skip, until } from "../server.js";

initializeLogger({ pretty: false, level: "error" });

const TEXT = "The museum is open until six. Come in by the small door.";
const NEXT = "Of course, until six.";

const { url } = skip ? {} : await lent({ after }, "open");

const cartesiaTTS = () => new cartesia.TTS({ apiKey: "none", baseUrl: url, voice: "ava" });
const deepgramTTS = () => new deepgram.TTS({ apiKey: "none", baseUrl: url });
const elevenlabsTTS = (options) =>
  new elevenlabs.TTS({ apiKey: "none", baseURL: `${url}/v1`, voiceId: "ava", ...options });

const STREAMING = {
  elevenlabs: elevenlabsTTS,
  "elevenlabs, word by word": () => elevenlabsTTS({ autoMode: false, encoding: "pcm_24000" }),
  cartesia: cartesiaTTS,
  deepgram: deepgramTTS,
};
const WITH_WORDS = ["elevenlabs", "elevenlabs, word by word", "cartesia"];

/** The words and the seconds of the speech of a stream or of a whole text. */
async function heard(speech) {
  const found = { seconds: 0, words: "" };
  for await (const audio of speech) {
    if (typeof audio === "symbol") continue; // the end of a segment
    found.seconds += audio.frame.samplesPerChannel / audio.frame.sampleRate;
    for (const word of audio.timedTranscripts ?? []) found.words += word.text;
  }
  return found;
}

async function turn(tts, text) {
  const stream = tts.stream();
  for (const delta of text.match(/.{1,4}/g)) stream.pushText(delta);
  stream.flush();
  stream.endInput();
  return heard(stream);
}

function assertSpoken({ seconds }, text) {
  assert.ok(seconds > 0.03 * text.length && seconds < 0.2 * text.length, `${seconds} s`);
}

for (const [name, make] of Object.entries(STREAMING)) {
  test(`${name}: turns of deltas, one without anything to speak`, { skip }, async (t) => {
    const tts = make();
    t.after(() => tts.close());
    for (const text of [TEXT, NEXT]) {
      const found = await turn(tts, text);
      assertSpoken(found, text);
      if (WITH_WORDS.includes(name)) assert.equal(found.words.trim(), text);
    }
    assert.ok((await turn(tts, "…")).seconds < 0.2);
  });
}

// Deepgram's plugin goes on reading a stream that was closed until it is spoken.
for (const name of ["elevenlabs", "cartesia"]) {
  test(`${name}: a barge-in, and the next turn`, { skip }, async (t) => {
    const tts = STREAMING[name]();
    t.after(() => tts.close());
    const stream = tts.stream();
    stream.pushText(Array(8).fill(TEXT).join(" "));
    stream.flush();
    await stream.next();
    stream.close();
    await until(url, "tts_active_turns", 0);
    const found = await turn(tts, NEXT);
    assertSpoken(found, NEXT);
    assert.equal(found.words.trim(), NEXT);
  });
}

test("a whole text", { skip }, async (t) => {
  const api = new openai.TTS({ apiKey: "none", baseURL: `${url}/v1`, voice: "nova" });
  for (const tts of [api, elevenlabsTTS()]) {
    t.after(() => tts.close());
    assertSpoken(await heard(tts.synthesize(TEXT)), TEXT);
  }
});
