/** Programs that say the same as the page does, to copy. The API key is left to the environment. */

/**
 * @typedef {object} Spoken
 * @property {string} origin of the server, such as http://127.0.0.1:8000
 * @property {string} text
 * @property {string} voice
 * @property {string} language
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
      `  -d ${shell(JSON.stringify({ input: text, voice, language, response_format: "wav" }))} \\`,
      "  --fail-with-body --output speech.wav",
    ].join("\n") + "\n",

  python: ({ origin, text, voice, language, key }) => `${key ? "import os\n\n" : ""}from realtime_tts.client import speak_to_wav

result = speak_to_wav(
    ${python(text)},
    "speech.wav",
    ${python(origin)},${key ? '\n    api_key=os.environ["REALTIME_TTS_API_KEY"],' : ""}
    voice=${python(voice)},
    language=${python(language)},
)
print(result)
# While text is still arriving: RealtimeTTS(...).speak(deltas), see the README.
`,

  javascript: ({ origin, text, voice, language, key }) => `import { RealtimeTTS } from "realtime-tts";

const tts = await RealtimeTTS.connect(${script(origin)}, {
  voice: ${script(voice)},
  language: ${script(language)},${key ? "\n  apiKey: process.env.REALTIME_TTS_API_KEY," : ""}
});
const turn = tts.speak(${script(text)}); // or an async iterable of text deltas
for await (const packet of turn) console.log(packet.length, "bytes"); // 24 kHz, mono, s16le
tts.close();
`,
};

/** @param {string} text */
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** @param {string} text */
const script = (text) => JSON.stringify(text);

/** JSON is a Python literal, too, but for halves of surrogate pairs. @param {string} text */
const python = (text) => JSON.stringify(/** @type {any} */ (text).toWellFormed?.() ?? text);
