/** Programs that say the same as the page does, to copy. The API key is left to the environment. */

/** @import { Settings } from "./speaker.js" */

/**
 * @typedef {object} Spoken
 * @property {string} origin of the server, such as http://127.0.0.1:8000
 * @property {string} text
 * @property {boolean} key whether the server wants one
 * @property {Settings} settings null where the choice is left to the server
 */

/** @type {Record<string, (spoken: Spoken) => string>} */
export const SNIPPETS = {
  python: ({ origin, text, settings, key }) => `${key ? "import os\n\n" : ""}from realtime_tts.client import speak_to_wav

result = speak_to_wav(
    ${python(text)},
    "speech.wav",
    ${python(origin)},${key ? '\n    api_key=os.environ["REALTIME_TTS_API_KEY"],' : ""}
${given(settings, (name, value) => `    ${name}=${python(value)},\n`)})
print(result)
# While text is still arriving: RealtimeTTS(...).speak(deltas), see the README.
`,

  javascript: ({ origin, text, settings, key }) => `import { RealtimeTTS } from "realtime-tts";

const tts = await RealtimeTTS.connect(${script(origin)}, {
${given(settings, (name, value) => `  ${name}: ${script(value)},\n`)}${key ? "  apiKey: process.env.REALTIME_TTS_API_KEY,\n" : ""}});
const turn = tts.speak(${script(text)}); // or an async iterable of text deltas
for await (const packet of turn) console.log(packet.length, "bytes"); // 24 kHz, mono, s16le
tts.close();
`,

  // OpenAI's speech API, so that nothing has to be installed. WAV, since every server can make it.
  curl: ({ origin, text, settings, key }) =>
    [
      ...(key ? ["export REALTIME_TTS_API_KEY=…"] : []),
      `curl ${origin}/v1/audio/speech \\`,
      ...(key ? ['  -H "Authorization: Bearer $REALTIME_TTS_API_KEY" \\'] : []),
      "  -H 'Content-Type: application/json' \\",
      `  -d ${shell(JSON.stringify({ input: text, ...chosen(settings), response_format: "wav" }))} \\`,
      "  --fail-with-body --output speech.wav",
    ].join("\n") + "\n",

  openai: ({ origin, text, settings, key }) => `import os

from openai import OpenAI

client = OpenAI(base_url=${python(`${origin}/v1`)}, api_key=${key ? 'os.environ["REALTIME_TTS_API_KEY"]' : '"none"'})
with client.audio.speech.with_streaming_response.create(
    model=${python(settings.model ?? "tts-1")},
    voice=${python(settings.voice ?? "alloy")},
    input=${python(text)},
${settings.instructions ? `    instructions=${python(settings.instructions)},\n` : ""}    response_format="wav",
) as speech:
    speech.stream_to_file("speech.wav")
`.replace(key ? "" : "import os\n\n", ""),
};

/** What OpenAI's API knows of the settings, and our language. @param {Settings} settings */
function chosen({ model, voice, language, instructions }) {
  const all = Object.entries({ model, voice, language, instructions });
  return Object.fromEntries(all.filter(([, value]) => value !== null));
}

/**
 * A line for each that is chosen.
 *
 * @param {Settings} settings
 * @param {(name: string, value: string) => string} line
 */
const given = (settings, line) =>
  Object.entries(settings)
    .map(([name, value]) => (value ? line(name, value) : ""))
    .join("");

/** @param {string} text */
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** @param {string} text */
const script = (text) => JSON.stringify(text);

/** JSON is a Python literal, too, but for halves of surrogate pairs. @param {string} text */
const python = (text) => JSON.stringify(/** @type {any} */ (text).toWellFormed?.() ?? text);
