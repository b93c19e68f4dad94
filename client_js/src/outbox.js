/** @import * as wire from "../types/messages.js" */

// Messages bunch up on the way.
const RATE_SHARE = 0.9;
// The rest is for interrupts, which never wait.
const BURST_SHARE = 0.5;
const MOST_BYTES_PER_UNIT = 8;

/** Sends messages no faster than the server allows. Text that waits is joined. */
export class Outbox {
  #write;
  #rate;
  #burst;
  #tokens;
  #refilledAt = performance.now();
  #maxUnits;
  /** @type {any[]} */
  #queue = [];
  #timer = 0;

  /** @param {(message: any) => void} write @param {wire.Limits} limits */
  constructor(write, limits) {
    this.#write = write;
    this.#rate = (limits.messages_per_second * RATE_SHARE) / 1000;
    this.#burst = this.#tokens = Math.max(1, limits.message_burst * BURST_SHARE);
    const fits = Math.floor(limits.max_message_bytes / MOST_BYTES_PER_UNIT);
    this.#maxUnits = Math.max(1, Math.min(limits.max_text_chars, fits));
  }

  /** @param {string} turn_id @param {string} text @param {boolean} end */
  text(turn_id, text, end) {
    while (text) {
      const piece = text.slice(0, this.#maxUnits);
      text = text.slice(this.#maxUnits);
      this.send({ type: "text", turn_id, text: piece, ...(end && !text && { end }) });
    }
  }

  /** @param {wire.ClientMessage} message */
  send(message) {
    if (!this.#queue.length && this.#take()) return this.#write(message);
    if (!this.#join(message)) this.#queue.push({ ...message });
    this.#arm();
  }

  /** Sends ahead of the queue. @param {wire.ClientMessage} message */
  sendNow(message) {
    this.#tokens--;
    this.#write(message);
  }

  /** Returns the text that waited. @param {string} turnId */
  drop(turnId) {
    let text = "";
    this.#queue = this.#queue.filter((message) => {
      if (message.turn_id !== turnId) return true;
      text += message.text ?? "";
      return false;
    });
    return text;
  }

  close() {
    clearTimeout(this.#timer);
    this.send = this.sendNow = () => {};
  }

  /** @param {wire.ClientMessage} message */
  #join(message) {
    const last = this.#queue.at(-1);
    if (message.type !== "text" || last?.type !== "text") return false;
    const text = last.text + message.text;
    if (last.turn_id !== message.turn_id || last.end || text.length > this.#maxUnits) return false;
    Object.assign(last, message, { text });
    return true;
  }

  #take() {
    const now = performance.now();
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#refilledAt) * this.#rate);
    this.#refilledAt = now;
    return this.#tokens >= 1 && this.#tokens-- >= 1;
  }

  #arm() {
    this.#timer ||= setTimeout(() => this.#drain(), Math.ceil((1 - this.#tokens) / this.#rate));
  }

  #drain() {
    this.#timer = 0;
    while (this.#queue.length && this.#take()) this.#write(this.#queue.shift());
    if (this.#queue.length) this.#arm();
  }
}
