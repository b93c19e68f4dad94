import { worklet } from "./player-worklet.js";
import { SAMPLE_RATE } from "./protocol.js";

// Seconds
const BLOCK = 0.02;
const TICK = 0.01;
const LEAST = 0.01; // sooner is late, as devices are ahead
const SOON = 0.04; // where more may come
const AHEAD = 1.2; // hidden pages tick once a second
const FADE = 0.004;

/**
 * In place of the worklet's node, as over plain http. The same processor makes blocks ahead of the
 * device; its reports count when heard.
 */
export class Scheduled {
  port = {
    onmessage: (/** @type {any} */ _) => {},
    postMessage: (/** @type {any[]} */ ...[order]) => {
      if (order.clear) this.#cut(order);
      else this.#processor.received(order);
      this.#timer ||= setInterval(() => this.#tick(), TICK * 1000);
    },
  };
  /** @type {any[]} */
  #reports = [];
  /** @type {any[]} */
  #blocks = [];
  #at = 0;
  #timer = 0;
  #context;
  #out;
  /** @type {any} */
  #processor;
  #scope;

  /** @param {AudioContext} context */
  constructor(context) {
    this.#context = context;
    this.#out = context.createGain();
    const postMessage = (/** @type {any} */ report) => this.#reports.push(report);
    this.#scope = {
      sampleRate: context.sampleRate,
      currentTime: 0,
      AudioWorkletProcessor: class {
        port = { postMessage };
      },
      registerProcessor: (/** @type {any[]} */ ...[, Processor]) => {
        this.#processor = new Processor();
      },
    };
    worklet(this.#scope);
  }

  /** @param {AudioNode} to */
  connect(to) {
    this.#out.connect(to);
  }

  #tick() {
    const { queue } = this.#processor;
    const { currentTime, state } = this.#context;
    if (state === "closed") {
      queue.clear();
      this.#reports = [];
    }
    this.#blocks = this.#blocks.filter(({ from }) => from + BLOCK > currentTime);
    while (queue.size) {
      const now = this.#context.currentTime; // as making takes time
      if (this.#at < now + LEAST) this.#at = now + SOON;
      const [[id, buffer]] = queue;
      const spare = buffer.ended || buffer.buffered > BLOCK * SAMPLE_RATE;
      if (this.#at > currentTime + (spare && buffer.state === "playing" ? AHEAD : SOON)) break;
      this.#make(id, buffer);
    }
    while (this.#reports[0]?.time <= currentTime) {
      this.port.onmessage({ data: this.#reports.shift() });
    }
    if (queue.size || this.#reports.length) return;
    clearInterval(this.#timer);
    this.#timer = 0;
  }

  /** @param {number} id @param {any} buffer */
  #make(id, buffer) {
    const { sampleRate } = this.#context;
    const block = this.#context.createBuffer(1, BLOCK * sampleRate, sampleRate);
    const from = this.#at;
    const before = buffer.played;
    this.#scope.currentTime = this.#at += block.duration;
    this.#processor.process([], [[block.getChannelData(0)]]);
    const source = this.#context.createBufferSource();
    source.buffer = block;
    source.connect(this.#out);
    source.start(from);
    this.#blocks.push({ id, from, before, after: buffer.played, source });
  }

  /** @param {any} order */
  #cut(order) {
    const { id } = order;
    const [first] = this.#processor.queue.keys();
    this.#processor.received(order);
    if (first === id) this.#processor.process([], [[new Float32Array(9600)]]);
    this.#reports = this.#reports.filter((report) => report.id !== id);
    const now = this.#context.currentTime + LEAST;
    const end = now + FADE;
    const blocks = this.#blocks.filter((block) => block.id === id);
    if (blocks.length) {
      const { gain } = this.#out;
      gain.setValueAtTime(1, now).linearRampToValueAtTime(0, end).setValueAtTime(1, end);
      for (const { source } of blocks) source.stop(end);
      this.#at = 0;
    }
    const last = blocks.find(({ from }) => from + BLOCK > end) ?? blocks.at(-1);
    const { before, after, from } = last ?? { before: 0, after: 0, from: end };
    const heard = Math.round(before + Math.max(0, end - from) * SAMPLE_RATE);
    this.port.onmessage({ data: { id, cleared: Math.min(heard, after) } });
  }
}
