/** One turn on the page: its text on the way in, its sound on the way out, and what was seen of it. */

import { SAMPLE_RATE } from "/client/index.js";
import { fewestTokens } from "./pieces.js";
import { Trace } from "./trace.js";

/** @import { Turn } from "/client/index.js" */
/** @import { Settings } from "./speaker.js" */

/** @typedef {{textSpoken: string, textRemaining: string, playedMs: number}} Heard after an interrupt */

export class Speech extends EventTarget {
  /** All text given to it, sent or about to be. */
  text = "";
  /** Text that will be given to it, where that is known; for the eye. */
  coming = "";
  trace = new Trace();
  /** @type {Uint8Array[]} */
  packets = [];
  /** @type {Heard | null} */
  report = null;
  /** @type {Error | null} */
  trouble = null;
  /** @type {number | null} when it was over for the listener */
  endedAt = null;
  textOpen = true;
  /** The browser does not let sound begin. */
  locked = false;
  /** Its session has no connection at the moment. */
  lost = false;
  /** Seconds of the whole turn, once all has come. @type {number | null} */
  total = null;
  heard = 0;
  lead = 0;
  /** Aborted when no more text is of use. */
  stop = new AbortController();
  /** @type {Turn | null} */
  #turn = null;
  /** @type {any} */
  #playback = null;
  #interrupting = false;

  /** @param {Settings} settings */
  constructor(settings) {
    super();
    this.settings = settings;
  }

  /* Text in. What comes before there is a turn waits for it. */

  /** @param {string} delta */
  send(delta) {
    if (!delta || this.over || !this.textOpen) return;
    this.text += delta;
    this.trace.text(performance.now(), fewestTokens(this.text));
    this.#turn?.send(delta);
  }

  flush() {
    this.#turn?.flush();
  }

  end() {
    if (!this.textOpen) return;
    this.textOpen = false;
    this.#turn?.end();
  }

  /** @param {AsyncIterable<string> | Iterable<string>} deltas */
  async feed(deltas) {
    for await (const delta of deltas) {
      if (this.over) return;
      this.send(delta);
    }
    this.end();
  }

  /* The speaker's side. */

  /** The turn, with every packet kept for a file. @param {Turn} turn */
  joined(turn) {
    const packets = { [Symbol.asyncIterator]: turn[Symbol.asyncIterator].bind(turn) };
    const keep = (/** @type {Uint8Array} */ packet) => {
      this.packets.push(packet.slice()); // the player gives the memory away
      this.trace.packet(performance.now(), packet.length / 2 / SAMPLE_RATE);
    };
    turn[Symbol.asyncIterator] = async function* () {
      for await (const packet of packets) {
        keep(packet);
        yield packet;
      }
    };
    this.#turn = turn;
    if (this.text) turn.send(this.text, { end: !this.textOpen });
    else if (!this.textOpen) turn.end();
    return turn;
  }

  /** @param {any} playback */
  async listen(playback) {
    this.#playback = playback;
    this.#turn?.done.then(
      () => (this.total = this.#interrupting ? null : this.trace.seconds),
      () => {},
    );
    await playback.done;
    if (!this.#interrupting) this.finish();
  }

  /** Look at the player. @param {number} now @param {number} peak */
  sample(now, peak) {
    if (this.over) return;
    if (this.#playback) {
      const { heardSeconds, leadSeconds } = this.#playback.stats();
      this.heard = heardSeconds;
      this.lead = Math.max(0, leadSeconds);
    }
    this.trace.sample(now, { lead: this.lead, peak, textOpen: this.textOpen });
  }

  interrupting() {
    this.#interrupting = true;
    this.stop.abort();
  }

  /** @param {Heard | null} report */
  interrupted(report) {
    this.report = report ?? { textSpoken: "", textRemaining: this.text, playedMs: 0 };
    this.heard = this.report.playedMs / 1000;
    this.finish();
  }

  /**
   * @param {Error} trouble in words
   * @param {{textSpoken?: string, textRemaining?: string}} [error] what the client threw: of a lost
   *   turn it knows about how much was heard
   */
  fail(trouble, { textSpoken = "", textRemaining = "" } = {}) {
    if (this.over) return;
    this.trouble = trouble;
    if (textSpoken || textRemaining) {
      this.report = { textSpoken, textRemaining, playedMs: 0 };
    }
    this.finish();
  }

  finish() {
    if (this.over) return;
    this.endedAt = performance.now();
    if (!this.report && !this.trouble && this.total !== null) this.heard = this.total;
    this.lead = 0;
    this.trace.end(this.endedAt);
    this.stop.abort();
    this.dispatchEvent(new Event("over"));
  }

  /* For the eye. */

  /** How the model gets the text; "" before it is known. */
  get layout() {
    return this.#turn?.layout ?? "";
  }

  get over() {
    return this.endedAt !== null;
  }

  /** @returns {"failed" | "interrupted" | "done" | "locked" | "lost" | "waiting" | "held" | "speaking"} */
  get state() {
    if (this.trouble) return "failed";
    if (this.report || this.#interrupting) return "interrupted";
    if (this.over) return "done";
    if (this.locked) return "locked";
    if (this.lost && this.lead === 0) return "lost"; // until then, nobody hears anything of it
    if (this.trace.firstPacketAt === null) return "waiting";
    return this.trace.isHeld ? "held" : "speaking";
  }
}
