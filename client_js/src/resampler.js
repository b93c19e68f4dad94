const HALF = 8; // taps on each side
const FINE = 512; // steps between two samples

/** Windowed sinc whose state outlives the calls, so that there are no seams. */
export class Resampler {
  #taps = new Float32Array(2 * HALF);
  #kernel;
  #step;
  #between = 0;

  /** @param {number} from @param {number} to sample rates */
  constructor(from, to) {
    this.#step = from / to;
    const cutoff = Math.min(1, to / from);
    this.#kernel = Float32Array.from({ length: HALF * FINE + 1 }, (_, i) => {
      const x = (Math.PI * i) / FINE;
      const sinc = i ? Math.sin(cutoff * x) / (cutoff * x) : 1;
      return cutoff * sinc * (0.5 + 0.5 * Math.cos(x / HALF));
    });
  }

  /** @param {Float32Array} out @param {(block: Float32Array) => void} pull at the first rate */
  fill(out, pull) {
    const block = new Float32Array(Math.floor(this.#between + this.#step * out.length));
    pull(block);
    let read = 0;
    for (let i = 0; i < out.length; i++) {
      out[i] = this.#sample();
      this.#between += this.#step;
      for (; this.#between >= 1 && read < block.length; this.#between--) {
        this.#taps.copyWithin(0, 1);
        this.#taps[2 * HALF - 1] = block[read++] ?? 0;
      }
    }
  }

  #sample() {
    let sum = 0;
    for (let i = 0; i < 2 * HALF; i++) {
      const away = Math.abs(i + 1 - HALF - this.#between);
      sum += (this.#taps[i] ?? 0) * (this.#kernel[Math.round(away * FINE)] ?? 0);
    }
    return sum;
  }
}
