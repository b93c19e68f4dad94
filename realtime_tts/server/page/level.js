/** Loudness, and whether somebody speaks. */

const SILENCE = -100;

/** Loudness in decibels below full scale. @param {Float32Array} samples */
export function decibels(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  const power = sum / Math.max(1, samples.length);
  return power > 0 ? Math.max(SILENCE, 10 * Math.log10(power)) : SILENCE;
}

/**
 * Says when speech begins and ends: loud for `attackMs` begins it, quiet for `hangoverMs` ends it. A
 * click is too short to begin it, a pause between words too short to end it.
 */
export class SpeechGate {
  speaking = false;
  #attackMs;
  #hangoverMs;
  /** @type {number | null} */
  #loudSince = null;
  #loudAt = -Infinity;

  /** @param {{attackMs?: number, hangoverMs?: number}} [options] */
  constructor({ attackMs = 120, hangoverMs = 600 } = {}) {
    this.#attackMs = attackMs;
    this.#hangoverMs = hangoverMs;
  }

  /**
   * @param {number} now milliseconds
   * @param {number} level decibels
   * @param {number} threshold decibels
   * @returns {boolean} true once, when speech begins
   */
  hear(now, level, threshold) {
    if (level >= threshold) {
      this.#loudSince ??= now;
      this.#loudAt = now;
    } else if (!this.speaking) {
      this.#loudSince = null;
    }
    if (this.speaking) {
      if (now - this.#loudAt >= this.#hangoverMs) {
        this.speaking = false;
        this.#loudSince = null;
      }
      return false;
    }
    this.speaking = this.#loudSince !== null && now - this.#loudSince >= this.#attackMs;
    return this.speaking;
  }
}
