import { ClientError } from "./errors.js";
import { Inbox } from "./inbox.js";
import { SAMPLE_RATE } from "./protocol.js";

/** @import { Connection } from "./connection.js" */
/** @import { Interrupted, TurnResult } from "./inbox.js" */
/** @import { Position } from "./protocol.js" */

/** @typedef {{playedMs?: number, playedSamples?: number}} Played how much the listener has heard */
/** @typedef {string | Iterable<string> | AsyncIterable<string>} TextSource */

/**
 * One stream of text in and of packets out. Made by `RealtimeTTS.turn()`; it reaches the server
 * with its first text.
 *
 * Iterating gives the packets (`Uint8Array`: 24 kHz, mono, 16 bit little-endian, at most 4,096
 * bytes) until the turn is over, then throws what ended it early: `TurnError`, `OverloadedError` or
 * `ConnectionLost`; nothing after an interrupt. Leaving the loop early interrupts the turn.
 *
 * @implements {AsyncIterable<Uint8Array>}
 */
export class Turn {
  #connection;
  #inbox;
  #replyTimeoutMs;
  #text = "";
  #begun = false;
  #ended = false;
  /** @type {Promise<Interrupted> | null} */
  #interrupting = null;

  /** @param {Connection} connection @param {string} turnId @param {number} replyTimeoutMs */
  constructor(connection, turnId, replyTimeoutMs) {
    this.#connection = connection;
    this.#inbox = new Inbox(turnId);
    this.#replyTimeoutMs = replyTimeoutMs;
    connection.join(this.#inbox);
  }

  /** The turn's name on the wire and in the server's log. */
  get turnId() {
    return this.#inbox.turnId;
  }

  /** All text sent so far. */
  get text() {
    return this.#text;
  }

  /** Nothing more will come. */
  get over() {
    return this.#inbox.over;
  }

  /** How the turn ended. Rejects with what iterating would throw. @returns {Promise<TurnResult>} */
  get done() {
    return this.#inbox.result.promise;
  }

  /** `streaming` or `full_text`, once audio began. */
  get layout() {
    return this.#inbox.layout;
  }

  /** Samples that came, whether or not they were read. */
  get samplesReceived() {
    return this.#inbox.samplesReceived;
  }

  /** What the server warned about, such as text with nothing to speak. */
  get warnings() {
    return this.#inbox.warnings;
  }

  /* Text in */

  /**
   * Send a text delta as it came from the language model: no trimming, no joining. `end` ends the
   * text with it, so that the server sees a short text whole. Does nothing once the turn is over or
   * interrupted, for a sender cannot know that in time.
   *
   * @param {string} delta
   * @param {{end?: boolean}} [options]
   * @throws {ClientError} after `end()`
   */
  send(delta, { end = false } = {}) {
    if (typeof delta !== "string") {
      throw new ClientError(`a text delta is a string, found ${typeof delta}`);
    }
    if (this.over || this.#interrupting) return;
    if (this.#ended) {
      throw new ClientError(`turn ${this.turnId}: text after its end; open the next turn`);
    }
    if (delta !== "") {
      this.#begun = true;
      this.#text += delta;
      this.#ended = end;
      this.#connection.outbox.text(this.turnId, delta, end);
    } else if (end) this.end();
  }

  /** Speak what was sent so far without waiting for more, and stay in the turn. */
  flush() {
    if (this.#live) this.#connection.outbox.send({ type: "flush", turn_id: this.turnId });
  }

  /** No more text. A turn without any is over at once. Idempotent. */
  end() {
    if (this.#ended) return;
    if (this.#live) this.#connection.outbox.send({ type: "turn.end", turn_id: this.turnId });
    else if (!this.#begun) this.#finishHere("complete");
    this.#ended = true;
  }

  /**
   * Report how much the listener has heard, for the server's schedule and `textSpoken`.
   *
   * @param {Played} position
   */
  played(position) {
    if (this.#begun && !this.#interrupting && !this.#connection.lost) {
      const message = { type: /** @type {const} */ ("played"), turn_id: this.turnId };
      this.#connection.outbox.send({ ...message, ...onWire(position) });
    }
  }

  /* Packets out */

  /** @returns {AsyncIterator<Uint8Array, undefined>} */
  [Symbol.asyncIterator]() {
    return {
      next: async () => {
        const value = await this.#inbox.next();
        return value ? { done: false, value } : { done: true, value: undefined };
      },
      return: async () => {
        if (!this.over) this.#abandon();
        return { done: true, value: undefined };
      },
    };
  }

  /* Stopping */

  /**
   * Stop speaking. From this call on not one more packet comes out of the turn. Without a position
   * the server estimates what was heard. Works on a turn that is done, too, while its listener still
   * hears it. Called again it gives the first answer.
   *
   * @param {Played} [position]
   * @returns {Promise<Interrupted>} rejects with ConnectionLost
   */
  interrupt(position = {}) {
    this.#inbox.silence();
    this.#interrupting ??= this.#interrupt(position);
    return this.#interrupting;
  }

  /** @param {Played} position @returns {Promise<Interrupted>} */
  async #interrupt(position) {
    if (!this.#begun) {
      this.#finishHere("interrupted");
      return this.#heard({ playedMs: 0 });
    }
    if (this.#connection.lost) throw this.#connection.lost;
    const inbox = this.#inbox;
    const unsent = this.#connection.outbox.drop(this.turnId);
    const message = { type: /** @type {const} */ ("interrupt"), turn_id: this.turnId };
    this.#connection.join(inbox); // a turn that is done had left
    this.#connection.outbox.sendNow({ ...message, ...onWire(position) });
    const answer = inbox.report.promise;
    const report = await this.#connection.within(this.#replyTimeoutMs, answer, "no answer");
    if (!report) this.#finishHere("interrupted");
    if (inbox.over) this.#connection.leave(inbox);
    else await this.#connection.within(this.#replyTimeoutMs, settled(this.done), "no `turn.done`");
    const heard = report ?? this.#heard(position);
    return { ...heard, textRemaining: heard.textRemaining + unsent };
  }

  #abandon() {
    this.interrupt().catch(() => {}); // a lost connection has stopped it as well
  }

  /**
   * Feed the turn from `source` in the background, and end it.
   *
   * @param {TextSource} source
   * @returns {this}
   */
  feed(source) {
    this.#feed(source).catch((error) => {
      this.#inbox.fail(error);
      this.#abandon();
    });
    return this;
  }

  /** @param {TextSource} source */
  async #feed(source) {
    if (typeof source === "string") return this.send(source, { end: true });
    for await (const delta of source) {
      if (this.over || this.#interrupting) return;
      this.send(delta);
    }
    this.end();
  }

  /** The server knows the turn and still takes text for it. */
  get #live() {
    return this.#begun && !this.#ended && !this.#interrupting && !this.over;
  }

  /** The turn is over without word from the server. @param {string} reason */
  #finishHere(reason) {
    if (this.over) return;
    this.#connection.leave(this.#inbox);
    const counts = { samples: 0, ttfaMs: null, underruns: 0, heldMs: 0, textChars: 0 };
    this.#inbox.finish({ turnId: this.turnId, reason, ...counts });
  }

  /**
   * About a turn that the server does not know any more, or never knew: all of it was heard.
   *
   * @param {Played} position
   */
  #heard({ playedMs, playedSamples }) {
    const samplesSent = this.samplesReceived;
    const ms = ((playedSamples ?? samplesSent) / SAMPLE_RATE) * 1000;
    return {
      turnId: this.turnId,
      samplesSent,
      playedMs: playedMs ?? ms,
      textSpoken: this.#text,
      textRemaining: "",
    };
  }
}

/** @param {Promise<unknown>} promise @returns {Promise<void>} */
const settled = (promise) =>
  promise.then(
    () => {},
    () => {},
  );

/** @param {Played} position @returns {Position} */
function onWire({ playedMs, playedSamples }) {
  return {
    ...(playedMs !== undefined && { played_ms: playedMs }),
    ...(playedSamples !== undefined && { played_samples: playedSamples }),
  };
}
