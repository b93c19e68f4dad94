/**
 * How much of a text has been heard: an estimate for the eye, word by word. The model does not say
 * when it speaks which word. After an interrupt the server's own estimate replaces this one, which
 * follows the same idea (realtime_tts/text/spoken.py): every character has an expected duration.
 */

/** Seconds of one character. @param {string} char */
function seconds(char) {
  if (/[.!?…。！？\n]/u.test(char)) return 0.35;
  if (/[,;:、，；：—–]/u.test(char)) return 0.15;
  if (/\s/u.test(char)) return 0.05;
  if (/\p{N}/u.test(char)) return 0.28;
  if (/[\u3040-\u30ff]/u.test(char)) return 0.135;
  if (/[\u3400-\u9fff]/u.test(char)) return 0.22;
  if (/[\uac00-\ud7af]/u.test(char)) return 0.18;
  return /\p{L}/u.test(char) ? 0.067 : 0;
}

/** Expected seconds of a text. @param {string} text */
export function expectedSeconds(text) {
  let sum = 0;
  for (const char of text) sum += seconds(char);
  return sum;
}

/**
 * Where the listener is: the text before `start` was heard, the word up to `end` is being heard.
 *
 * @param {string} text
 * @param {number} heard seconds
 * @param {{total?: number | null, pace?: number}} [known] `total`: seconds of the whole turn, once
 *   that is known; `pace`: how much longer than expected this voice takes
 * @returns {{start: number, end: number}}
 */
export function heardWord(text, heard, { total = null, pace = 1 } = {}) {
  if (heard <= 0) return { start: 0, end: 0 };
  if (total !== null && heard >= total) return { start: text.length, end: text.length };
  const all = expectedSeconds(text);
  const budget = total ? (all * heard) / total : heard / pace;
  let sum = 0;
  let index = 0;
  for (const char of text) {
    sum += seconds(char);
    if (sum > budget) break;
    index += char.length;
  }
  if (index >= text.length) return { start: text.length, end: text.length };
  const before = /\S*$/u.exec(text.slice(0, index))?.[0].length ?? 0;
  const after = /^\S*/u.exec(text.slice(index))?.[0].length ?? 0;
  return { start: index - before, end: index + after };
}
