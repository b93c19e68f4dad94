import {
  ConnectionLost,
  HandshakeRefused,
  OverloadedError,
  ProtocolError,
  RequestError,
  TurnError,
} from "./errors.js";
import { deferred } from "./inbox.js";
import { Outbox } from "./outbox.js";
import { SUBPROTOCOL, parseServerMessage } from "./protocol.js";

/** @import { Deferred, Inbox } from "./inbox.js" */
/** @import { Ready, ServerError, SessionStart, TurnDone, Warning } from "./protocol.js" */

/**
 * The part of the WebSocket interface that is used; browsers, Node 22 and the package `ws` have it.
 *
 * @typedef {object} Socket
 * @property {string} binaryType
 * @property {string} protocol
 * @property {(data: string) => void} send
 * @property {(code?: number, reason?: string) => void} close
 * @property {(type: any, listener: (event: any) => void) => void} addEventListener
 */

/** One socket with one session: hands everything that comes to the turn it belongs to. */
export class Connection {
  /** @type {ConnectionLost | null} */
  lost = null;
  /** @type {Ready | null} */
  #ready = null;
  /** @type {Outbox | null} */
  #outbox = null;
  /** @type {Deferred<Ready>[]} */
  #readyWaiters = [];
  /** @type {Map<string, Inbox>} */
  #inboxes = new Map();
  /** @type {Inbox | null} */
  #onAir = null;
  /** @type {ServerError | null} */
  #fatal = null;
  /** @type {unknown} */
  #socketError;
  #socket;
  #url;
  #onWarning;

  /**
   * @param {Socket} socket
   * @param {string} url
   * @param {(notice: Warning | ServerError) => void} onWarning
   */
  constructor(socket, url, onWarning) {
    this.#socket = socket;
    this.#url = url;
    this.#onWarning = onWarning;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", (event) => this.#received(event.data));
    socket.addEventListener("close", (event) => this.#closed(event.code, event.reason));
    socket.addEventListener("error", (event) => (this.#socketError ??= event));
  }

  /** The server's latest word on voices, settings and limits. */
  get ready() {
    if (!this.#ready) throw new TypeError("used before the first `ready`");
    return this.#ready;
  }

  get outbox() {
    if (!this.#outbox) throw new TypeError("used before the first `ready`");
    return this.#outbox;
  }

  /**
   * The server's next `ready`; rejects if it refuses instead, or says nothing for too long.
   *
   * @param {number} timeoutMs
   */
  async nextReady(timeoutMs) {
    if (this.lost) throw this.lost;
    /** @type {Deferred<Ready>} */
    const waiter = deferred();
    this.#readyWaiters.push(waiter);
    return this.within(timeoutMs, waiter.promise, "no `ready`");
  }

  /** Change the settings of later turns. @param {SessionStart} start @param {number} timeoutMs */
  async configure(start, timeoutMs) {
    if (this.lost) throw this.lost;
    this.outbox.send(start);
    await this.nextReady(timeoutMs);
  }

  /** Hand what comes for this turn to `inbox`, until it is done. @param {Inbox} inbox */
  join(inbox) {
    this.#inboxes.set(inbox.turnId, inbox);
  }

  /** @param {Inbox} inbox */
  leave(inbox) {
    this.#inboxes.delete(inbox.turnId);
  }

  /**
   * Wait for an answer; a server that gives none in time is given up.
   *
   * @template T
   * @param {number} timeoutMs
   * @param {Promise<T>} answer
   * @param {string} missing
   * @returns {Promise<T>}
   */
  async within(timeoutMs, answer, missing) {
    const timer = setTimeout(() => {
      this.#end(new ConnectionLost(`${this.#url}: ${missing} within ${timeoutMs} ms`));
      this.#socket.close();
    }, timeoutMs);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
    }
  }

  close() {
    this.#end(new ConnectionLost(`the connection to ${this.#url} was closed by this client`));
    this.#socket.close(1000);
  }

  /** @param {unknown} data */
  #received(data) {
    if (this.lost) return;
    if (typeof data !== "string") {
      // Between turns there is no audio; a server that sends some has nobody to play it to.
      this.#onAir?.packet(/** @type {ArrayBuffer} */ (data));
      return;
    }
    try {
      this.#dispatch(parseServerMessage(data));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      if (error.code === "unknown_type") return; // the server is newer
      const says = `${this.#url} sent what no realtime-tts server sends: ${error.message}`;
      this.#end(new ConnectionLost(says));
      this.#socket.close();
    }
  }

  /** @param {import("./protocol.js").ServerMessage} message */
  #dispatch(message) {
    const inbox = "turn_id" in message ? this.#inboxes.get(message.turn_id ?? "") : undefined;
    switch (message.type) {
      case "ready":
        this.#becameReady(message);
        break;
      case "turn.started":
        this.#onAir = inbox ?? null;
        if (inbox) inbox.layout = message.layout;
        break;
      case "turn.interrupted":
        inbox?.interrupted(message);
        break;
      case "turn.done":
        this.#turnDone(message, inbox);
        break;
      case "warning":
        inbox?.warn(message);
        this.#onWarning(message);
        break;
      case "error":
        this.#error(message, inbox);
    }
  }

  /** @param {Ready} message */
  #becameReady(message) {
    this.#ready = message;
    this.#outbox ??= new Outbox((data) => this.#write(data), message.limits);
    for (const waiter of this.#readyWaiters.splice(0)) waiter.resolve(message);
  }

  /** @param {TurnDone} message @param {Inbox | undefined} inbox */
  #turnDone(message, inbox) {
    if (this.#onAir?.turnId === message.turn_id) this.#onAir = null;
    this.#inboxes.delete(message.turn_id);
    inbox?.done(message);
  }

  /** @param {ServerError} message @param {Inbox | undefined} inbox */
  #error(message, inbox) {
    const { code, fatal, retryable, retry_after_ms: retryAfterMs } = message;
    const says = `${code}: ${message.message}`;
    const overloaded =
      typeof retryAfterMs === "number" ? new OverloadedError(says, code, retryAfterMs) : null;
    if (fatal) this.#fatal = message;
    if (inbox) inbox.refuse(overloaded ?? new TurnError(says, { code, retryable }));
    if (message.turn_id) return;
    const waiters = this.#readyWaiters.splice(0);
    const error = overloaded ?? new RequestError(says, { code, retryable });
    for (const waiter of waiters) waiter.reject(error);
    if (waiters.length === 0 && !fatal) this.#onWarning(message);
  }

  /** @param {string} data */
  #write(data) {
    this.#socket.send(data);
  }

  /** @param {number} code @param {string} reason */
  #closed(code, reason) {
    if (!this.#ready && !this.#fatal) this.#refuseWaiters();
    const said = this.#fatal ? `${this.#fatal.code}: ${this.#fatal.message}` : `${code} ${reason}`;
    this.#end(new ConnectionLost(`${this.#url}: the connection was closed: ${said.trim()}`));
  }

  #refuseWaiters() {
    const detail = /** @type {any} */ (this.#socketError)?.message;
    const says =
      `no session at ${this.#url}${detail ? `: ${detail}` : ""}; is the server running, is the ` +
      `API key right, is this origin allowed, does it speak ${SUBPROTOCOL}?`;
    const error = new HandshakeRefused(says, this.#socketError);
    for (const waiter of this.#readyWaiters.splice(0)) waiter.reject(error);
  }

  /** @param {ConnectionLost} error */
  #end(error) {
    if (this.lost) return;
    this.lost = error;
    this.#outbox?.close();
    for (const waiter of this.#readyWaiters.splice(0)) waiter.reject(error);
    for (const inbox of this.#inboxes.values()) {
      inbox.fail(error);
      inbox.report.reject(error);
    }
    this.#inboxes.clear();
    this.#onAir = null;
  }
}
