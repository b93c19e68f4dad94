import { ClientError, SAMPLE_RATE } from "./protocol.js";

/** @import { Played, Position } from "../types/messages.js" */

export const SAMPLES_PER_MS = SAMPLE_RATE / 1000;
// 15 characters a second; fewer in most other scripts, so that rather too much counts as heard.
const CHARACTERS_PER_SAMPLE = 15 / SAMPLE_RATE;

/** @param {Played} position @returns {Position} */
export function onWire({ playedMs, playedSamples }) {
  for (const value of [playedMs, playedSamples]) {
    if (value !== undefined && !(value >= 0 && value < Infinity)) {
      throw new ClientError(`a position is a number, 0 or more; found ${value}`);
    }
  }
  return {
    ...(playedMs !== undefined && { played_ms: playedMs }),
    ...(playedSamples !== undefined && { played_samples: Math.round(playedSamples) }),
  };
}

/**
 * Where in a text so many samples end: an estimate, back to the end of a word.
 *
 * @param {string} text
 * @param {number} samples
 * @param {number} all those of the whole text; 0: not known
 */
export function split(text, samples, all) {
  const heard = Math.ceil(samples * (all ? text.length / all : CHARACTERS_PER_SAMPLE));
  const cut = heard < text.length ? text.slice(0, heard).search(/\S*$/) : text.length;
  return { textSpoken: text.slice(0, cut), textRemaining: text.slice(cut) };
}
