import { TurnError } from "./errors.js";

/** @import { RealtimeTTSError } from "./errors.js" */
/** @import { TurnDone, TurnInterrupted, Warning } from "./protocol.js" */

/**
 * How a turn ended, by the server's measure.
 *
 * @typedef {object} TurnResult
 * @property {string} turnId
 * @property {string} reason complete, interrupted, idle, max_length, or a guard's
 * @property {number} samples at 24 kHz, sent
 * @property {number | null} ttfaMs from the first text at the server to the first packet
 * @property {number} underruns packets that were sent too late
 * @property {number} heldMs how long speech waited for text
 * @property {number} textChars
 */

/**
 * What was heard of an interrupted turn. `textSpoken + textRemaining` is the text as it was sent;
 * where the cut lies is an estimate.
 *
 * @typedef {object} Interrupted
 * @property {string} turnId
 * @property {number} samplesSent
 * @property {number} playedMs
 * @property {string} textSpoken
 * @property {string} textRemaining
 */

/**
 * @template T
 * @typedef {object} Deferred a promise and what settles it
 * @property {Promise<T>} promise
 * @property {(value: T) => void} resolve
 * @property {(reason: unknown) => void} reject
 */

/** @template T @returns {Deferred<T>} */
export function deferred() {
  /** @type {any} */
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  made.promise.catch(() => {}); // nobody may be waiting, and that is no unhandled rejection
  return made;
}

/**
 * What has come from the server for one turn, until its reader takes it. Putting in never waits;
 * how much can pile up is bounded by the server, which sends at most `lead_ms` ahead of real time.
 */
export class Inbox {
  samplesReceived = 0;
  /** @type {string | null} */
  layout = null;
  /** @type {Warning[]} */
  warnings = [];
  over = false;
  /** @type {Deferred<TurnResult>} */
  result = deferred();
  /** @type {Deferred<Interrupted | null>} answer to an interrupt; null: the turn is forgotten */
  report = deferred();
  /** @type {Uint8Array[]} */
  #packets = [];
  /** @type {unknown} */
  #failure = null;
  /** @type {RealtimeTTSError | null} */
  #refused = null;
  #silenced = false;
  /** @type {(() => void) | null} */
  #wake = null;

  /** @param {string} turnId */
  constructor(turnId) {
    this.turnId = turnId;
  }

  // From the connection

  /** @param {ArrayBuffer} data */
  packet(data) {
    this.samplesReceived += data.byteLength / 2;
    if (!this.#silenced) this.#packets.push(new Uint8Array(data));
    this.#changed();
  }

  /** @param {TurnInterrupted} message */
  interrupted(message) {
    this.silence();
    this.report.resolve({
      turnId: message.turn_id,
      samplesSent: message.samples_sent,
      playedMs: message.played_ms,
      textSpoken: message.text_spoken,
      textRemaining: message.text_remaining,
    });
  }

  /** @param {Warning} message */
  warn(message) {
    this.warnings.push(message);
    if (message.code === "turn_already_done") this.report.resolve(null);
  }

  /**
   * An error about this turn came; the turn goes on until `turn.done`.
   *
   * @param {RealtimeTTSError} error
   */
  refuse(error) {
    if (error.code === "unknown_turn") this.report.resolve(null);
    else this.#refused ??= error;
  }

  /** @param {TurnDone} message */
  done(message) {
    const { reason } = message;
    if (reason === "closed") {
      const says = "closed: the server ended the session before the turn was spoken";
      this.fail(this.#refused ?? new TurnError(says, { code: "closed", retryable: true }));
    } else if (this.#refused && reason !== "interrupted") {
      this.fail(this.#refused);
    } else if (reason === "error") {
      this.fail(new TurnError("the server ended the turn with an error it did not explain"));
    }
    this.finish({
      turnId: message.turn_id,
      reason,
      samples: message.samples,
      ttfaMs: message.ttfa_ms,
      underruns: message.underruns,
      heldMs: message.held_ms,
      textChars: message.text_chars,
    });
  }

  /** @param {TurnResult} result */
  finish(result) {
    this.over = true;
    this.result.resolve(result);
    this.#changed();
  }

  /** The turn ends with an error, unless it ended before. @param {unknown} error */
  fail(error) {
    if (!this.over) {
      this.over = true;
      this.#failure = error;
      this.result.reject(error);
      this.#changed();
    }
  }

  // For the reader

  /** From now on not one more packet comes out. */
  silence() {
    this.#silenced = true;
    this.#packets = [];
    this.#changed();
  }

  /** The next packet; null after the last. Throws what ended the turn early. */
  async next() {
    for (;;) {
      const packet = this.#packets.shift();
      if (packet) return packet;
      if (this.#failure) throw this.#failure;
      if (this.over || this.#silenced) return null;
      await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
    }
  }

  #changed() {
    this.#wake?.();
    this.#wake = null;
  }
}
