/** @import * as internal from "../types/internal.js" */

/**
 * All of the audio thread, from whose source the player makes a module, as bundlers lose files. So
 * it uses nothing from outside; nor private names, for which older targets need helpers.
 *
 * @param {any} scope
 */
export function worklet(scope = globalThis) {
  const RATE = 24_000;
  const FADE = 0.004 * RATE;
  // Samples that playing begins with: more after an underrun, less with time.
  const START = 0.1 * RATE;
  const MOST = 0.4 * RATE;
  const GROWTH = 1.5;
  const CALM = 10 * RATE;
  const REPORT_SECONDS = 0.05;
  const HALF = 8; // taps on each side
  const FINE = 512; // steps between two samples

  /** Shared by all turns. */
  class Refill {
    constructor() {
      this.samples = START;
      this.calm = 0;
    }

    grow() {
      this.samples = Math.min(MOST, this.samples * GROWTH);
      this.calm = 0;
    }

    /** @param {number} samples */
    decay(samples) {
      this.calm += samples;
      if (this.calm < CALM) return;
      this.samples = Math.max(START, this.samples / GROWTH);
      this.calm = 0;
    }
  }

  /** One turn's samples between network and loudspeaker. */
  class JitterBuffer {
    constructor(refill = new Refill()) {
      this.state = "waiting";
      this.said = "";
      this.played = 0;
      this.underruns = 0;
      this.buffered = 0;
      /** @type {Int16Array[]} */
      this.queue = [];
      this.at = 0; // in the first of them
      this.need = START;
      this.waited = 0;
      this.ended = false;
      this.fade = 0; // of FADE steps: how loud
      this.refill = refill;
    }

    /** @param {Int16Array} samples */
    push(samples) {
      if (this.ended || !samples.length) return;
      this.queue.push(samples);
      this.buffered += samples.length;
    }

    /** Fades out; returns what is played then. */
    clear() {
      this.ended = true;
      this.buffered = Math.min(this.buffered, this.fade);
      return this.played + this.buffered;
    }

    /** @param {Float32Array} out */
    pull(out) {
      let i = 0;
      // Speech that waits for text waits no longer than a full buffer.
      if (this.buffered) this.waited += out.length;
      const full = this.ended || Math.max(this.buffered, this.waited) >= this.need;
      if (full && this.state === "waiting") this.state = "playing";
      if (this.state === "playing") {
        for (; i < out.length && this.buffered; i++) {
          // The rest suffices for a fade-out.
          const step = this.buffered > this.fade ? 1 : -1;
          this.fade = Math.min(FADE, this.fade + step);
          out[i] = (this.next() / 32_768) * (this.fade / FADE);
        }
        this.played += i;
        this.refill.decay(i);
        if (!this.buffered) this.dry();
      }
      out.fill(0, i);
    }

    dry() {
      this.fade = this.waited = 0;
      this.state = this.ended ? "done" : "waiting";
      if (this.ended) return;
      this.underruns++;
      this.refill.grow();
      this.need = this.refill.samples;
    }

    next() {
      const [first] = this.queue;
      const sample = first?.[this.at++] ?? 0;
      if (this.at === first?.length) {
        this.queue.shift();
        this.at = 0;
      }
      this.buffered--;
      return sample;
    }
  }

  /** Windowed sinc whose state outlives the calls: no seams. */
  class Resampler {
    /** @param {number} from @param {number} to sample rates */
    constructor(from, to) {
      this.taps = new Float32Array(2 * HALF);
      this.step = from / to;
      this.between = 0;
      const cutoff = Math.min(1, to / from);
      this.kernel = Float32Array.from({ length: HALF * FINE + 1 }, (_, i) => {
        const x = (Math.PI * i) / FINE;
        const sinc = i ? Math.sin(cutoff * x) / (cutoff * x) : 1;
        return cutoff * sinc * (0.5 + 0.5 * Math.cos(x / HALF));
      });
    }

    /** @param {Float32Array} out @param {JitterBuffer} source at the first rate */
    fill(out, source) {
      const block = new Float32Array(Math.floor(this.between + this.step * out.length));
      source.pull(block);
      let read = 0;
      for (let i = 0; i < out.length; i++) {
        let sum = 0;
        for (let k = 0; k < 2 * HALF; k++) {
          const away = Math.abs(k + 1 - HALF - this.between);
          sum += (this.taps[k] ?? 0) * (this.kernel[Math.round(away * FINE)] ?? 0);
        }
        out[i] = sum;
        this.between += this.step;
        for (; this.between >= 1 && read < block.length; this.between--) {
          this.taps.copyWithin(0, 1);
          this.taps[2 * HALF - 1] = block[read++] ?? 0;
        }
      }
    }
  }

  if (!scope.registerProcessor) return { JitterBuffer, Refill, Resampler };

  class PlayerWorklet extends scope.AudioWorkletProcessor {
    constructor() {
      super();
      /** @type {Map<number, JitterBuffer>} */
      this.queue = new Map();
      this.refill = new Refill();
      const to = scope.sampleRate;
      this.resampler = to === RATE ? null : new Resampler(RATE, to);
      this.reportAt = 0;
      this.port.onmessage = (/** @type {any} */ { data }) => this.received(data);
    }

    /** @param {internal.WorkletOrder} order */
    received({ id, begin, samples, end, clear }) {
      if (begin) this.queue.set(id, new JitterBuffer(this.refill));
      const buffer = this.queue.get(id);
      if (!buffer) return;
      if (samples) buffer.push(new Int16Array(samples));
      if (end) buffer.ended = true; // plays the rest
      if (clear) this.port.postMessage({ id, cleared: buffer.clear() });
    }

    /** @param {Float32Array[][]} _ @param {[[Float32Array]]} outputs */
    process(_, [[out]]) {
      for (const [id, buffer] of this.queue) {
        // A block later: the resampler has the last samples.
        if (buffer.state === "done") this.queue.delete(id);
        if (this.resampler) this.resampler.fill(out, buffer);
        else buffer.pull(out);
        const { state, played, underruns, buffered } = buffer;
        const time = scope.currentTime;
        if (state !== buffer.said || time >= this.reportAt) {
          buffer.said = state;
          this.reportAt = time + REPORT_SECONDS;
          this.port.postMessage({ id, state, played, underruns, buffered, time });
        }
        break; // the others wait
      }
      return true;
    }
  }

  // Players share contexts.
  scope.registered ||= !scope.registerProcessor("realtime-tts-player", PlayerWorklet);
}

worklet(); // for `workletUrl`
