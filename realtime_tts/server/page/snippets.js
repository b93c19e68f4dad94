/** Programs that say the same as the page does, to copy. The API key is left to the environment. */

/**
 * @typedef {object} Spoken
 * @property {string} origin of the server, such as http://127.0.0.1:8000
 * @property {string} text
 * @property {string} voice "" for the checkpoint's
 * @property {string} language "" for the checkpoint's
 * @property {boolean} key whether the server wants one
 */

/** @type {Record<string, (spoken: Spoken) => string>} */
export const SNIPPETS = {
  // OpenAI's speech API, so that nothing has to be installed. WAV, since every server can make it.
  curl: ({ origin, text, voice, language, key }) =>
    [
      ...(key ? ["export REALTIME_TTS_API_KEY=…"] : []),
      `curl ${origin}/v1/audio/speech \\`,
      ...(key ? ['  -H "Authorization: Bearer $REALTIME_TTS_API_KEY" \\'] : []),
      "  -H 'Content-Type: application/json' \\",
      `  -d ${shell(JSON.stringify({ input: text, ...chosen(voice, language), response_format: "wav" }))} \\`,
      "  --fail-with-body --output speech.wav",
    ].join("\n") + "\n",

  python: ({ origin, text, voice, language, key }) => `${key ? "import os\n\n" : ""}from realtime_tts.client import speak_to_wav

result = speak_to_wav(
    ${python(text)},
    "speech.wav",
    ${python(origin)},${key ? '\n    api_key=os.environ["REALTIME_TTS_API_KEY"],' : ""}
${given({ voice, language }, (name, value) => `    ${name}=${python(value)},\n`)})
print(result)
# While text is still arriving: RealtimeTTS(...).speak(deltas), see the README.
`,

  javascript: ({ origin, text, voice, language, key }) => `import { RealtimeTTS } from "realtime-tts";

const tts = await RealtimeTTS.connect(${script(origin)}, {
${given({ voice, language }, (name, value) => `  ${name}: ${script(value)},\n`)}${key ? "  apiKey: process.env.REALTIME_TTS_API_KEY,\n" : ""}});
const turn = tts.speak(${script(text)}); // or an async iterable of text deltas
for await (const packet of turn) console.log(packet.length, "bytes"); // 24 kHz, mono, s16le
tts.close();
`,

  openai: ({ origin, text, voice, key }) => `import os

from openai import OpenAI

client = OpenAI(base_url=${python(`${origin}/v1`)}, api_key=${key ? 'os.environ["REALTIME_TTS_API_KEY"]' : '"none"'})
with client.audio.speech.with_streaming_response.create(
    model="tts-1",
    voice=${python(voice || "alloy")},
    input=${python(text)},
    response_format="wav",
) as speech:
    speech.stream_to_file("speech.wav")
`.replace(key ? "" : "import os\n\n", ""),
};

/** @param {string} voice @param {string} language */
const chosen = (voice, language) => ({ ...(voice && { voice }), ...(language && { language }) });

/**
 * A line for each that is chosen.
 *
 * @param {Record<string, string>} options
 * @param {(name: string, value: string) => string} line
 */
const given = (options, line) =>
  Object.entries(options)
    .map(([name, value]) => (value ? line(name, value) : ""))
    .join("");

/** @param {string} text */
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** @param {string} text */
const script = (text) => JSON.stringify(text);

/** JSON is a Python literal, too, but for halves of surrogate pairs. @param {string} text */
const python = (text) => JSON.stringify(/** @type {any} */ (text).toWellFormed?.() ?? text);
