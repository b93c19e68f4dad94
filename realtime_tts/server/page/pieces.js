/** A text as a language model would write it: in pieces, at a pace, with stalls. */

// Words keep the space before them, as tokens do; long ones come in parts.
const PIECE = /\s*[\p{L}\p{N}\p{M}]{1,5}|\s*[^\p{L}\p{N}\p{M}\s]|\s+/gu;
// A sign of a script without spaces, a word, or a mark.
const TOKEN = /[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[\p{L}\p{N}\p{M}]+|\S/gu;
const STALL_EVERY = 26;
const STALL_MS = 2200;

/** The pieces of a text, about as long as tokens are; joined they are the text. @param {string} text */
export function pieces(text) {
  return text.match(PIECE) ?? [];
}

/**
 * About how many tokens a text has, rather too few: most words are one.
 *
 * @param {string} text
 */
export function fewestTokens(text) {
  return text.match(TOKEN)?.length ?? 0;
}

/**
 * @param {string} text
 * @param {{tokensPerSecond: () => number, stalls: () => boolean, signal?: AbortSignal}} options
 *   asked before every piece, so that a slider works while the text streams
 */
export async function* paced(text, { tokensPerSecond, stalls, signal }) {
  let due = performance.now();
  let number = 0;
  for (const piece of pieces(text)) {
    if (signal?.aborted) return;
    yield piece;
    number += 1;
    // From when it was due, not from now: timers are late, and the pace would drift.
    due += 1000 / tokensPerSecond();
    if (stalls() && number % STALL_EVERY === 0) due += STALL_MS;
    const now = performance.now();
    if (due < now - 250) due = now; // a tab that slept does not catch up in a burst
    if (due > now) await pause(due - now, signal);
  }
}

/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    signal?.addEventListener("abort", done);
  });
}
