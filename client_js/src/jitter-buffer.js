/** @import * as api from "../types/api.js" */

const RATE = 24_000;
const FADE = 0.004 * RATE;
// Samples to have before playing begins: more after an underrun, less with time.
const START = 0.1 * RATE;
const MOST = 0.4 * RATE;
const GROWTH = 1.5;
const CALM = 10 * RATE;

/** For all turns that come over one network. */
export class Refill {
  samples = START;
  #calm = 0;

  grow() {
    this.samples = Math.min(MOST, this.samples * GROWTH);
    this.#calm = 0;
  }

  /** @param {number} samples */
  decay(samples) {
    this.#calm += samples;
    if (this.#calm < CALM) return;
    this.samples = Math.max(START, this.samples / GROWTH);
    this.#calm = 0;
  }
}

/** One turn's samples between network and loudspeaker: no clock, no I/O. */
export class JitterBuffer {
  /** @type {api.PlaybackState} */
  state = "waiting";
  played = 0;
  underruns = 0;
  buffered = 0;
  #ring = new Int16Array(1 << 15);
  #at = 0;
  #need = START;
  #waited = 0;
  #ended = false;
  /** Of FADE steps: how loud. */
  #fade = 0;
  #refill;

  constructor(refill = new Refill()) {
    this.#refill = refill;
  }

  /** @param {Int16Array} samples */
  push(samples) {
    if (this.#ended) return;
    while (this.buffered + samples.length > this.#ring.length) this.#double();
    for (const sample of samples) this.#ring[this.#index(this.buffered++)] = sample;
  }

  /** What there is, is played at once. */
  end() {
    this.#ended = true;
  }

  /** Only fade out: how much will have been played then. */
  clear() {
    this.#ended = true;
    this.buffered = Math.min(this.buffered, this.#fade);
    return this.played + this.buffered;
  }

  /** @param {Float32Array} out */
  pull(out) {
    let i = 0;
    if (this.#ready(out.length)) {
      for (; i < out.length && this.buffered > 0; i++) {
        // The rest suffices for a fade-out only.
        const step = this.buffered > this.#fade ? 1 : -1;
        this.#fade = Math.min(FADE, this.#fade + step);
        out[i] = ((this.#ring[this.#at] ?? 0) / 32_768) * (this.#fade / FADE);
        this.#at = this.#index(1);
        this.buffered--;
      }
      this.played += i;
      this.#refill.decay(i);
      if (this.buffered === 0) this.#dry();
    }
    out.fill(0, i);
  }

  /** @param {number} length */
  #ready(length) {
    if (this.state !== "waiting") return this.state === "playing";
    // Speech that waits for its text is held back no longer than a full buffer.
    if (this.buffered > 0) this.#waited += length;
    if (!this.#ended && Math.max(this.buffered, this.#waited) < this.#need) return false;
    this.state = "playing";
    return true;
  }

  #dry() {
    this.#fade = this.#waited = 0;
    this.state = this.#ended ? "done" : "waiting";
    if (this.#ended) return;
    this.underruns++;
    this.#refill.grow();
    this.#need = this.#refill.samples;
  }

  /** @param {number} ahead */
  #index(ahead) {
    return (this.#at + ahead) & (this.#ring.length - 1);
  }

  #double() {
    const ring = new Int16Array(2 * this.#ring.length);
    ring.set(this.#ring.subarray(this.#at));
    ring.set(this.#ring.subarray(0, this.#at), this.#ring.length - this.#at);
    this.#ring = ring;
    this.#at = 0;
  }
}
