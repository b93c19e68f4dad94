import { Outbox } from "./outbox.js";
import {
  ConnectionLost,
  HandshakeRefused,
  OverloadedError,
  RequestError,
  TurnError,
  deferred,
  parseServerMessage,
} from "./protocol.js";

/** @import * as api from "../types/api.js" */
/** @import * as internal from "../types/internal.js" */
/** @import * as wire from "../types/messages.js" */
/** @import { Turn } from "./turn.js" */

/** @template T @param {Promise<T>} answer @param {number} ms @param {() => void} late */
export function within(answer, ms, late) {
  // In halves, lest frozen pages time out before they read.
  let timer = setTimeout(() => (timer = setTimeout(late, ms / 2)), ms / 2);
  return answer.finally(() => clearTimeout(timer));
}

/** One socket, with its session. */
export class Connection {
  /** @type {ConnectionLost | null} */
  lost = null;
  onLost = () => {};
  /** @type {wire.Ready} */
  ready = /** @type {any} */ (null);
  /** Of turns that begin now. */
  last = this.ready;
  /** @type {Outbox} */
  outbox = /** @type {any} */ (null);
  /** @type {internal.Waiter[]} one for each `session.start` */
  #waiters = [];
  /** @type {Map<string | undefined, Turn>} */
  turns = new Map();
  /** @type {Turn | undefined} */
  #onAir;
  /** @type {wire.ServerError | null} */
  #fatal = null;
  #watch = 0;
  #socket;
  #url;
  #options;

  /** @param {api.Socket} socket @param {string} url @param {internal.Defaulted} options */
  constructor(socket, url, options) {
    this.#socket = socket;
    this.#url = url;
    this.#options = options;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", (event) => this.#received(event.data));
    socket.addEventListener("close", (event) => this.#closed(event.code, event.reason));
    // Chromium closes nothing that a policy forbids.
    socket.addEventListener("error", (event) => this.#closed(1006, event.message));
  }

  get resumes() {
    return this.ready?.settings.resume === "on";
  }

  /** @param {object | null} settings null: as it is @param {number} [timeoutMs] */
  async configure(settings, timeoutMs) {
    if (this.lost) throw this.lost;
    const waiter = deferred();
    const last = (this.last = { ...this.ready });
    this.start(settings, waiter);
    Object.assign(last, await this.within(waiter.promise, "no `ready`", timeoutMs));
  }

  /** @param {object | null} settings @param {internal.Waiter} [waiter] */
  start(settings, waiter) {
    if (settings) this.outbox.send({ ...settings, type: "session.start" });
    this.#waiters.push(waiter);
  }

  /**
   * Ends the connection without one in time.
   * @template T @param {Promise<T>} answer @param {string} missing @param {number} [timeoutMs]
   */
  within(answer, missing, timeoutMs = this.#options.replyTimeoutMs) {
    return within(answer, timeoutMs, () => this.#end(`${missing} within ${timeoutMs} ms`));
  }

  close() {
    this.#end("closed by this client", false, 1000);
  }

  /** @param {string | ArrayBuffer} data */
  #received(data) {
    if (this.lost) return;
    if (typeof data !== "string") return this.#onAir?.packet(data);
    let message;
    try {
      message = parseServerMessage(data);
    } catch (/** @type {any} */ error) {
      this.#end(`this is no realtime-tts server: ${error.message}`, false);
    }
    if (message) this.#dispatch(message);
  }

  /** @param {wire.ServerMessage} message */
  #dispatch(message) {
    const turn = "turn_id" in message ? this.turns.get(message.turn_id) : undefined;
    switch (message.type) {
      case "ready":
        if (this.#waiters[0] !== null) this.ready = message;
        this.outbox ??= new Outbox((sent) => this.#socket.send(JSON.stringify(sent)), message.limits);
        // Pages cannot ping.
        this.#watch ||= setInterval(() => {
          if (this.turns.size) this.configure({}).catch(() => {});
        }, this.#options.replyTimeoutMs);
        this.#waiters.shift()?.resolve(message);
        break;
      case "turn.started":
        this.#onAir = turn;
        if (turn) turn.layout = message.layout;
        break;
      case "turn.words":
        turn?.words.push(...message.words);
        if (turn) turn.wordsExact = message.exact === true;
        break;
      case "turn.state":
        turn?.state(message);
        break;
      case "turn.interrupted":
        turn?.interrupted(message);
        break;
      case "turn.done":
        if (message.reason === "closed" && this.resumes) break; // goes on
        if (this.#onAir === turn) this.#onAir = undefined;
        if (!turn?.interrupting) this.turns.delete(message.turn_id); // its report follows
        turn?.finished(message);
        break;
      case "warning":
        turn?.warn(message);
        this.#options.onWarning(message);
        break;
      case "error":
        this.#error(message, turn);
    }
  }

  /** @param {wire.ServerError} message @param {Turn} [turn] */
  #error(message, turn) {
    const { code, fatal, retryable, retry_after_ms: retryAfterMs = 0 } = message;
    if (fatal) this.#fatal = message;
    const Kind = retryAfterMs ? OverloadedError : message.turn_id ? TurnError : RequestError;
    const error = new Kind(`${code}: ${message.message}`, { code, retryable, retryAfterMs });
    turn?.refuse(error);
    if (message.turn_id) return;
    const waiter = this.#waiters.shift();
    waiter?.reject(error);
    if (!waiter && !fatal) this.#options.onWarning(message);
  }

  /** @param {number} code @param {string} [reason] */
  #closed(code, reason = "") {
    if (!this.ready && !this.#fatal) {
      const why = `${reason || code}; is the server running, the key right, this origin allowed?`;
      this.#waiters.shift()?.reject(new HandshakeRefused(`no session at ${this.#url}: ${why}`));
    }
    const why = this.#fatal ? `${this.#fatal.code}: ${this.#fatal.message}` : `${code} ${reason}`;
    this.#end(`closed: ${why}`, this.#fatal?.retryable ?? code !== 1008);
  }

  /** @param {string} why @param {boolean} [retryable] @param {number} [code] */
  #end(why, retryable = true, code) {
    this.#socket.close(code);
    clearInterval(this.#watch);
    if (this.lost) return;
    why = `connection to ${this.#url}: ${why}`;
    this.lost = new ConnectionLost(why, { code: "connection_lost", retryable });
    this.outbox?.close();
    for (const waiter of this.#waiters) waiter?.reject(this.lost);
    for (const turn of this.turns.values()) turn.lost(this.lost);
    this.turns.clear();
    this.onLost();
  }
}
