/**
 * What happened in a turn, as the listener saw it: packets, lead, sound, held periods, gaps.
 *
 * Times are milliseconds of one clock. The server does not announce that it holds a turn; it shows:
 * the text is still open, nothing comes, and yet the listener is not far behind.
 */

const HELD_AFTER_MS = 300;
const KEEP_MS = 14_000; // a little more than the chart shows

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
  gaps = [];
  #heldMs = 0;
  #leadCap;

  /** @param {number} leadCap seconds that the server may be ahead */
  constructor(leadCap) {
    this.#leadCap = leadCap;
  }

  /** @param {number} now */
  text(now) {
    this.firstTextAt ??= now;
  }

  /** @param {number} now @param {number} seconds of sound */
  packet(now, seconds) {
    this.firstPacketAt ??= now;
    this.#release(now);
    this.lastPacketAt = now;
    this.packetCount += 1;
    this.seconds += seconds;
    this.packets.push(now);
  }

  /** The listener ran out of sound. @param {number} now */
  gap(now) {
    this.gaps.push(now);
  }

  /**
   * @param {number} now
   * @param {{lead: number, peak: number, textOpen: boolean}} state `lead` in seconds, `peak` 0 to 1
   */
  sample(now, { lead, peak, textOpen }) {
    this.samples.push({ at: now, lead, peak });
    const last = this.lastPacketAt;
    const waiting = last !== null && textOpen && now - last > HELD_AFTER_MS;
    if (!waiting) this.#release(now);
    else if (!this.isHeld && lead < this.#leadCap - 0.6) this.held.push({ from: last, to: null });
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

  /** When there were gaps that late text does not explain. */
  get underrunsAt() {
    return this.gaps.filter((at) => !this.held.some((span) => covers(span, at)));
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

/** @param {Span} span @param {number} at */
function covers({ from, to }, at) {
  return from <= at && (to === null || at <= to + 100); // the refill after it, too
}
