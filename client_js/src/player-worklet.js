import { JitterBuffer, Refill } from "./jitter-buffer.js";
import { Resampler } from "./resampler.js";

/** @import * as internal from "../types/internal.js" */

const RATE = 24_000;
const REPORT_SECONDS = 0.05;

/** Plays turns one after the other. */
class PlayerWorklet extends AudioWorkletProcessor {
  /** @type {Map<number, JitterBuffer>} */
  #queue = new Map();
  #refill = new Refill();
  #resampler = sampleRate === RATE ? null : new Resampler(RATE, sampleRate);
  #reportAt = 0;
  #said = "";

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#received(data);
  }

  /** @param {internal.WorkletOrder} order */
  #received({ id, begin, samples, end, clear }) {
    if (begin) this.#queue.set(id, new JitterBuffer(this.#refill));
    const buffer = this.#queue.get(id);
    if (!buffer) return;
    if (samples) buffer.push(new Int16Array(samples));
    if (end) buffer.end();
    if (clear) this.port.postMessage({ id, cleared: buffer.clear() });
  }

  /** @param {Float32Array[][]} _ @param {[[Float32Array]]} outputs */
  process(_, [[out]]) {
    const [head] = this.#queue;
    if (head) {
      const [id, buffer] = head;
      /** @param {Float32Array} block */
      const pull = (block) => buffer.pull(block);
      if (this.#resampler) this.#resampler.fill(out, pull);
      else pull(out);
      this.#report(id, buffer);
    }
    return true;
  }

  /** @param {number} id @param {JitterBuffer} buffer */
  #report(id, { state, played, underruns, buffered }) {
    if (state === this.#said && currentTime < this.#reportAt) return;
    this.#said = state;
    this.#reportAt = currentTime + REPORT_SECONDS;
    this.port.postMessage({ id, state, played, underruns, buffered, time: currentTime });
    if (state === "done") this.#queue.delete(id);
  }
}

registerProcessor("realtime-tts-player", PlayerWorklet);
