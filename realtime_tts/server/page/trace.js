/**
 * What happened in a turn, as the listener saw it: packets, lead, sound, held periods, gaps.
 *
 * Times are milliseconds of one clock. The server does not announce that it holds a turn; it shows:
 * the model takes one token of text for each frame of sound, so a turn with a frame for every token it
 * has been given waits for the next.
 */

const HELD_AFTER_MS = 150;
const FRAMES_PER_SECOND = 12.5;
const AHEAD_SECONDS = 2.5; // who is this far ahead rests for that: the server's limit is 3
const NOT_YET_FED = 3; // tokens that may still change, or are on their way
const KEEP_MS = 14_000; // a little more than the chart shows
const TOGETHER_MS = 15; // packets that come so close on another were made at once
const RAMP = 5; // of the first pieces that are made at once

/** @typedef {{at: number, lead: number, peak: number}} Sample */
/** @typedef {{from: number, to: number | null}} Span `to` is null while it lasts */

export class Trace {
  /** @type {number | null} */
  firstTextAt = null;
  /** @type {number | null} */
  firstPacketAt = null;
  /** @type {number | null} */
  lastPacketAt = null;
  packetCount = 0;
  seconds = 0;
  /** @type {number[]} */
  packets = [];
  /** @type {Sample[]} */
  samples = [];
  /** @type {Span[]} */
  held = [];
  /** @type {number[]} */
  underruns = [];
  /** Seconds of what came at once, of the first pieces: speech begins with short ones. @type {number[]} */
  ramp = [];
  #tokens = 0;
  #pieces = 0;
  #heldMs = 0;

  /** More text was sent. @param {number} now @param {number} tokens of all of it */
  text(now, tokens) {
    this.firstTextAt ??= now;
    this.#tokens = tokens;
  }

  /** @param {number} now @param {number} seconds of sound */
  packet(now, seconds) {
    this.firstPacketAt ??= now;
    this.#release(now);
    this.#climb(now, seconds);
    this.lastPacketAt = now;
    this.packetCount += 1;
    this.seconds += seconds;
    this.packets.push(now);
  }

  /**
   * The listener ran out of sound: an underrun, unless it is for want of text.
   *
   * @param {number} now
   * @param {boolean} textOpen
   */
  gap(now, textOpen) {
    if (!textOpen || !this.#caughtUp) this.underruns.push(now);
  }

  /**
   * @param {number} now
   * @param {{lead: number, peak: number, textOpen: boolean}} state `lead` in seconds, `peak` 0 to 1
   */
  sample(now, { lead, peak, textOpen }) {
    this.samples.push({ at: now, lead, peak });
    const last = this.lastPacketAt;
    if (last === null || !textOpen || !this.#caughtUp) this.#release(now);
    else if (!this.isHeld && now - last > HELD_AFTER_MS && lead < AHEAD_SECONDS) {
      this.held.push({ from: last, to: null });
    }
    this.#forget(now - KEEP_MS);
  }

  /** The turn is over. @param {number} now */
  end(now) {
    this.#release(now);
  }

  get isHeld() {
    return this.held.at(-1)?.to === null;
  }

  /** @param {number} now */
  heldSeconds(now) {
    const last = this.held.at(-1);
    return (this.#heldMs + (last && last.to === null ? now - last.from : 0)) / 1000;
  }

  /** Time to first audio in milliseconds, here at the listener's; null before. */
  get ttfaMs() {
    if (this.firstTextAt === null || this.firstPacketAt === null) return null;
    return this.firstPacketAt - this.firstTextAt;
  }

  get #caughtUp() {
    return this.seconds * FRAMES_PER_SECOND >= this.#tokens - NOT_YET_FED;
  }

  /** @param {number} now @param {number} seconds */
  #climb(now, seconds) {
    const together = this.lastPacketAt !== null && now - this.lastPacketAt < TOGETHER_MS;
    if (!together) this.#pieces += 1;
    if (this.#pieces > RAMP) return;
    const at = this.#pieces - 1;
    this.ramp[at] = (this.ramp[at] ?? 0) + seconds;
  }

  /** @param {number} now */
  #release(now) {
    const last = this.held.at(-1);
    if (last && last.to === null) {
      last.to = now;
      this.#heldMs += now - last.from;
    }
  }

  /** @param {number} before */
  #forget(before) {
    while ((this.samples[0]?.at ?? Infinity) < before) this.samples.shift();
    while ((this.packets[0] ?? Infinity) < before) this.packets.shift();
  }
}
