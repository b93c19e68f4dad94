/** The tab that speaks a text, which comes as a language model would write it. */

import { byId, say } from "./dom.js";
import { paced } from "./pieces.js";

/** @import { Speech } from "./speech.js" */

const SAMPLE =
  "Good evening. There are two trains to the coast today. The first leaves at ten past six and goes " +
  "straight through; the second leaves at seven, and you would change once. I would take the first: " +
  "it costs a little more, but you would be home before nine. Shall I book it for you?";

/**
 * @param {() => Speech} speak begins a speech
 * @returns {() => void} plays
 */
export function streaming(speak) {
  const field = /** @type {HTMLTextAreaElement} */ (byId("text"));
  const pace = slider("pace", (value) => `${value} tokens a second`);
  const stalls = /** @type {HTMLInputElement} */ (byId("stalls"));
  field.value = SAMPLE;
  return () => {
    const text = field.value;
    if (!text.trim()) return field.focus();
    const speech = speak();
    speech.coming = text;
    const options = { tokensPerSecond: pace, stalls: () => stalls.checked, signal: speech.stop.signal };
    void speech.feed(paced(text, options));
  };
}

/**
 * A slider with its value in words beside it.
 *
 * @param {string} id
 * @param {(value: number) => string} words
 * @returns {() => number} its value
 */
export function slider(id, words) {
  const input = /** @type {HTMLInputElement} */ (byId(id));
  const show = () => {
    say(byId(`${id}-out`), words(input.valueAsNumber));
    input.setAttribute("aria-valuetext", words(input.valueAsNumber));
  };
  input.addEventListener("input", show);
  show();
  return () => input.valueAsNumber;
}
