/**
 * Ears for the chat: the browser's own speech recognition (Web Speech API), where it has one.
 *
 * What it hears of the page's own voice is told by its words, since not every browser takes the echo
 * out: words that are being spoken just now were not said by the person.
 */

import { byId, say } from "./dom.js";
import { echoes } from "./echo.js";
import { microphoneStream, whileChecked } from "./recording.js";

/** @type {Record<string, string>} */
const REASONS = {
  "not-allowed": "The browser refused the microphone. Allow it for this page, next to the address.",
  "service-not-allowed": "This browser does not let pages use its speech recognition.",
  "audio-capture": "No microphone was found.",
  network: "The browser's speech recognition cannot be reached; it needs the internet.",
  "language-not-supported": "The browser's speech recognition does not know this language.",
};

/**
 * @typedef {object} Listener
 * @property {(words: string, final: boolean) => void} heard what the person says, so far or to its end
 * @property {() => string} spoken what the page says just now; "" while it is silent
 * @property {(words: string) => void} failed
 */

/** @param {Listener} listener */
export function ears({ heard, spoken, failed }) {
  const { SpeechRecognition, webkitSpeechRecognition } = /** @type {any} */ (globalThis);
  const Recognition = SpeechRecognition ?? webkitSpeechRecognition;
  byId("ears-present").hidden = !Recognition;
  say(byId("mic-note"), Recognition ? "" : "This browser recognises no speech: you type what you say.");
  if (!Recognition) return;

  /** @param {(words: string) => void} fail */
  async function open(fail) {
    const stream = await microphoneStream({ echoCancellation: true, noiseSuppression: true }, fail);
    const recognition = new Recognition();
    Object.assign(recognition, { continuous: true, interimResults: true, lang: navigator.language });
    const start = () => recognition.start(stream.getAudioTracks()[0]); // older ones open it again
    recognition.onresult = (/** @type {any} */ event) => {
      for (const result of [...event.results].slice(event.resultIndex)) {
        const words = result[0].transcript.trim();
        if (words && !echoes(words, spoken())) heard(words, result.isFinal);
      }
    };
    recognition.onerror = (/** @type {any} */ { error }) => {
      if (error === "no-speech" || error === "aborted") return; // it ends, and begins again
      fail(REASONS[error] ?? `The browser's speech recognition failed: ${error}.`);
    };
    let over = false;
    recognition.onend = () => over || start(); // browsers end it after a while
    start();
    return () => {
      over = true;
      recognition.abort();
      for (const track of stream.getTracks()) track.stop();
    };
  }

  whileChecked(/** @type {HTMLInputElement} */ (byId("ears")), open, failed);
}
