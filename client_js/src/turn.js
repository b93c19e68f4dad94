import { Progress } from "./progress.js";
import {
  ClientError,
  ConnectionLost,
  RealtimeTTSError,
  SAMPLES_PER_MS,
  TurnError,
  deferred,
  onWire,
  split,
} from "./protocol.js";

/** @import * as api from "../types/api.js" */
/** @import * as internal from "../types/internal.js" */
/** @import * as wire from "../types/messages.js" */
/** @import { Connection } from "./connection.js" */

const MOST_IN_VAIN = 8;

export class Turn {
  text = "";
  over = false;
  /** @type {string | null} */
  layout = null;
  samplesReceived = 0;
  resumes = 0;
  /** @type {wire.Warning[]} */
  warnings = [];
  /** @type {wire.Word[]} */
  words = [];
  wordsExact = false;
  /** @type {internal.Deferred<api.TurnResult>} */
  #result = deferred();
  /** @type {internal.Deferred<api.Interrupted | null>} null: the server cannot say */
  #report = deferred();
  /** @type {Connection | null} */
  #connection = null;
  #ended = false;
  /** Characters before each flush. @type {number[]} */
  #flushes = [];
  #progress = new Progress();
  /** @type {wire.Ready | undefined} */
  #began;
  /** @type {Promise<api.Interrupted> | null} */
  interrupting = null;
  /** @type {Uint8Array<ArrayBuffer>[]} */
  #packets = [];
  /** @type {Error | null} */
  #failure = null;
  /** @type {RealtimeTTSError | null} */
  #refused = null;
  /** Sockets that were lost since the last packet, perhaps for this turn. */
  #inVain = 0;
  #wake = () => {};
  #wait;

  /** @param {string} turnId @param {(turn: Turn) => boolean} wait for a connection */
  constructor(turnId, wait) {
    this.turnId = turnId;
    this.#wait = wait;
  }

  get done() {
    return this.#result.promise;
  }

  /** @param {string} delta @param {api.SendOptions} [options] */
  send(delta, { end = false } = {}) {
    if (typeof delta !== "string") {
      throw new ClientError(`a text delta is a string, found ${typeof delta}`);
    }
    if (this.#stopped) return;
    if (this.#ended) {
      throw new ClientError(`turn ${this.turnId}: text after its end; open the next turn`);
    }
    if (delta) {
      this.text += delta;
      this.#ended = end;
      this.#began ??= this.#connection?.last;
      this.#connection?.outbox.text(this.turnId, delta, end);
    } else if (end) this.end();
  }

  flush() {
    if (this.#ended) return;
    this.#flushes.push(this.text.length);
    this.#send("flush");
  }

  end() {
    if (this.#ended) return;
    this.#ended = true;
    if (this.text) this.#send("turn.end");
    else this.#finishHere("complete");
  }

  /** @param {api.Played} position */
  played(position) {
    const at = onWire(position);
    if ((at.played_ms ?? at.played_samples) === undefined) {
      throw new ClientError("played: expected a position, found none");
    }
    this.#send("played", at);
  }

  /** @param {api.TextSource} source */
  feed(source) {
    this.#feed(source).catch((error) => {
      this.fail(error);
      this.interrupt();
    });
    return this;
  }

  /** @param {api.TextSource} source */
  async #feed(source) {
    if (typeof source === "string") return this.send(source, { end: true });
    for await (const delta of source) {
      if (this.#stopped) return;
      this.send(delta);
    }
    this.end();
  }

  /** @param {"flush" | "turn.end" | "played"} type @param {wire.Position} [at] */
  #send(type, at) {
    // Positions count when it is over, too.
    if (!this.text || this.interrupting || (this.over && !at)) return;
    this.#connection?.outbox.send({ type, turn_id: this.turnId, ...at });
  }

  get #stopped() {
    return this.over || this.interrupting !== null;
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (;;) {
        const packet = this.#packets.shift();
        if (packet) yield packet;
        else if (this.#failure) throw this.#failure;
        else if (this.#stopped) return;
        else await new Promise((resolve) => (this.#wake = () => resolve(null)));
      }
    } finally {
      if (!this.over) this.interrupt();
    }
  }

  /** @param {api.Played} [position] */
  interrupt(position = {}) {
    this.interrupting ??= this.#interrupt(onWire(position));
    this.#silence();
    return this.interrupting;
  }

  /** @param {wire.Position} at */
  async #interrupt(at) {
    const { turnId, samplesReceived: samplesSent } = this;
    const all = this.over && !this.#failure ? samplesSent : 0;
    const connection = this.#connection;
    const unsent = connection?.outbox.drop(turnId) ?? this.text;
    if (connection && !connection.lost && unsent !== this.text) {
      connection.turns.set(turnId, this); // a turn that is done had left
      connection.outbox.sendNow({ type: "interrupt", turn_id: turnId, ...at });
      const report = await connection.within(this.#report.promise, "no answer");
      await connection.within(this.done.catch(() => {}), "no `turn.done`");
      connection.turns.delete(turnId);
      if (report) return { ...report, textRemaining: report.textRemaining + unsent };
    }
    const playedMs = at.played_ms ?? (at.played_samples ?? samplesSent) / SAMPLES_PER_MS;
    const heard = split(this.text, playedMs * SAMPLES_PER_MS, all);
    this.#finishHere("interrupted");
    return { turnId, samplesSent, playedMs, ...heard };
  }

  #silence() {
    this.#packets = [];
    this.#wake();
  }

  /** @param {string} reason */
  #finishHere(reason) {
    if (this.over) return;
    this.#connection?.turns.delete(this.turnId);
    const { turnId: turn_id, samplesReceived: samples } = this;
    this.finished({ turn_id, reason, samples, ttfa_ms: null, underruns: 0, held_ms: 0, text_chars: 0 });
  }

  /* From the connection */

  /** Sends its text again. @param {Connection} connection */
  attach(connection) {
    if (this.over) return;
    const { turnId: turn_id, text } = this;
    const { outbox } = (this.#connection = connection);
    connection.turns.set(turn_id, this);
    const { settings } = connection.ready;
    if (text) this.#began ??= connection.last;
    const own = this.#began?.settings;
    const differs = own && JSON.stringify(own) !== JSON.stringify(settings);
    if (differs) connection.start(own, null);
    if (this.samplesReceived) {
      this.resumes++;
      this.#progress.resume(outbox, turn_id, this.words);
    }
    let from = 0;
    for (const to of this.#flushes) {
      outbox.text(turn_id, text.slice(from, to), false);
      if (to) outbox.send({ type: "flush", turn_id });
      from = to;
    }
    outbox.text(turn_id, text.slice(from), this.#ended);
    if (this.#ended && from === text.length) outbox.send({ type: "turn.end", turn_id });
    if (differs) connection.start(settings);
  }

  /** @param {RealtimeTTSError} error */
  lost(error) {
    const resumes = this.#connection?.resumes && (this.#progress.known || !this.samplesReceived);
    const again = !this.text || (resumes && ++this.#inVain <= MOST_IN_VAIN);
    if (this.interrupting) this.#finishHere("interrupted");
    else if (!again || !this.#wait(this)) this.fail(new ConnectionLost(error.message, error));
    this.#report.resolve(null);
  }

  /** @param {wire.TurnState} message */
  state(message) {
    this.#progress.state(message);
  }

  /** @param {Error} error */
  fail(error) {
    if (this.over) return;
    this.#failure = error;
    if (error instanceof RealtimeTTSError) {
      Object.assign(error, split(this.text, this.samplesReceived));
    }
    this.over = true;
    this.#result.reject(error);
    this.#wake();
  }

  /** @param {ArrayBuffer} data */
  packet(data) {
    this.samplesReceived += data.byteLength / 2;
    this.#inVain = 0;
    this.#progress.packet();
    if (!this.interrupting) this.#packets.push(new Uint8Array(data));
    this.#wake();
  }

  /** @param {wire.TurnInterrupted} message */
  interrupted(message) {
    this.#silence();
    this.#report.resolve({
      turnId: message.turn_id,
      samplesSent: message.samples_sent,
      playedMs: message.played_ms,
      textSpoken: message.text_spoken,
      textRemaining: message.text_remaining,
    });
  }

  /** @param {wire.Warning} message */
  warn(message) {
    this.warnings.push(message);
    if (message.code === "turn_already_done") this.#report.resolve(null);
  }

  /** The turn goes on until `turn.done`. @param {RealtimeTTSError} error */
  refuse(error) {
    if (error.code === "unknown_turn") this.#report.resolve(null);
    else this.#refused ??= error;
  }

  /** @param {internal.Done} message */
  finished(message) {
    const { reason } = message;
    if (reason === "closed" || reason === "error" || (this.#refused && reason !== "interrupted")) {
      const why = `${reason}: the server ended the turn before it was spoken`;
      return this.fail(this.#refused ?? new TurnError(why, { code: reason, retryable: true }));
    }
    this.over = true;
    this.#result.resolve({
      turnId: message.turn_id,
      reason,
      samples: message.samples,
      ttfaMs: message.ttfa_ms,
      underruns: message.underruns,
      heldMs: message.held_ms,
      heldInsideWord: message.held_inside_word ?? 0,
      textChars: message.text_chars,
      moves: message.moves ?? 0,
    });
    this.#wake();
  }
}
