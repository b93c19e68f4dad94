import { Connection, within } from "./connection.js";
import {
  ClientError,
  ConnectionLost,
  HandshakeRefused,
  KEY_SUBPROTOCOL_PREFIX,
  SUBPROTOCOL,
  deferred,
} from "./protocol.js";
import { Turn } from "./turn.js";

/** @import * as api from "../types/api.js" */
/** @import * as internal from "../types/internal.js" */

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8_000;

export class RealtimeTTS {
  #open;
  #options;
  #connection;
  #turns = 0;
  /** @type {Set<internal.Waiting<Connection>>} */
  #waiting = new Set();
  #reconnecting = false;
  #closed = false;
  #timer = 0;

  /**
   * @param {internal.Opener<Connection>} open @param {Connection} first
   * @param {internal.Defaulted} options
   */
  constructor(open, first, options) {
    this.#open = open;
    this.#options = options;
    this.#connection = this.#use(first);
  }

  /** @param {string | URL} server @param {api.SessionOptions & api.ConnectOptions} [options] */
  static async connect(server, options = {}) {
    const {
      apiKey,
      WebSocket: Socket = globalThis.WebSocket,
      connectTimeoutMs = 10_000,
      replyTimeoutMs = 10_000,
      giveUpAfterMs = 30_000,
      onWarning = () => {},
      onConnected = () => {},
      ...given
    } = options;
    if (!Socket) throw new ClientError('no WebSocket here: import WebSocket from "ws", pass { WebSocket }');
    const start = renamed(given);
    const url = websocketUrl(server, giveUpAfterMs > 0 && given.resume === undefined);
    const kept = { connectTimeoutMs, replyTimeoutMs, giveUpAfterMs, onWarning, onConnected };
    /** @type {internal.Opener<Connection>} */
    const open = async (settings) => {
      let key = apiKey;
      if (typeof key === "function") {
        const { promise, reject } = deferred();
        const late = new HandshakeRefused(`\`apiKey\` gave no key within ${connectTimeoutMs} ms`);
        key = await within(Promise.race([key(), promise]), connectTimeoutMs, () => reject(late));
      }
      const protocols = subprotocols(key);
      let connection;
      try {
        connection = new Connection(new Socket(url, protocols), url, kept);
        await connection.configure(null, connectTimeoutMs);
        if (Object.keys(settings).length) await connection.configure(settings);
      } catch (error) {
        connection?.close();
        throw connection ? error : new HandshakeRefused(`no session at ${url}: ${error}`);
      }
      return connection;
    };
    return new RealtimeTTS(open, await open(start), kept);
  }

  get ready() {
    return this.#connection.ready;
  }

  get connected() {
    return !this.#connection.lost;
  }

  /** @param {api.SessionOptions} options */
  async configure(options) {
    const start = renamed(options);
    await new Promise((resolve, fail) =>
      this.#join({ attach: (connection) => resolve(connection.configure(start)), fail }),
    );
  }

  /** @param {api.TurnOptions} [options] */
  turn({ turnId = `turn-${++this.#turns}` } = {}) {
    if (!/^[!-~]{1,64}$/.test(turnId)) {
      throw new ClientError(`turnId must be 1 to 64 printable ASCII characters, found ${turnId}`);
    }
    const turn = new Turn(turnId, (one) => this.#options.giveUpAfterMs > 0 && this.#wait(one));
    this.#join(turn);
    return turn;
  }

  /** @param {api.TextSource} text */
  speak(text) {
    return this.turn().feed(text);
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#connection.close();
    this.#giveUp(this.#connection.lost);
  }

  /** @param {Connection} connection */
  #use(connection) {
    connection.onLost = () => {
      if (this.#options.giveUpAfterMs) this.#reconnect();
      this.#options.onConnected(false);
    };
    return connection;
  }

  /** @param {internal.Waiting<Connection>} one */
  #join(one) {
    if (!this.#connection.lost) one.attach(this.#connection);
    else if (!this.#wait(one)) throw this.#connection.lost;
  }

  /** @param {internal.Waiting<Connection>} one @returns {boolean} */
  #wait(one) {
    if (this.#final) return false;
    this.#waiting.add(one);
    this.#reconnect();
    return true;
  }

  get #final() {
    return this.#closed || !this.#connection.lost?.retryable;
  }

  async #reconnect() {
    if (this.#reconnecting || this.#final) return;
    this.#reconnecting = true;
    let left = this.#options.giveUpAfterMs; // without sleep
    /** @type {any} */
    let error = this.#connection.lost;
    for (let ms = FIRST_WAIT_MS; ; ms *= 2) {
      const chance = (1 + Math.random()) / 2; // not all at once
      const wait = Math.max(error.retryAfterMs, Math.min(ms, LONGEST_WAIT_MS) * chance);
      await new Promise((resolve) => {
        this.#timer = setTimeout(resolve, wait);
      });
      const began = performance.now();
      // `apiKey` fails as the network does.
      const connection = await this.#open(this.ready.settings).catch((cause) => {
        error = { retryable: true, retryAfterMs: 0, ...cause, message: `${cause?.message ?? cause}`, cause };
      });
      if (connection) return this.#reconnected(connection);
      left -= wait + Math.min(performance.now() - began, this.#options.connectTimeoutMs);
      if (this.#closed || !error.retryable || error.retryAfterMs >= left) return this.#giveUp(error);
    }
  }

  /** @param {Connection} connection */
  #reconnected(connection) {
    this.#reconnecting = false;
    if (this.#closed) return connection.close();
    this.#connection = this.#use(connection);
    for (const one of this.#waiting) one.attach(connection);
    this.#waiting.clear();
    this.#options.onConnected(true);
  }

  /** @param {any} error */
  #giveUp(error) {
    this.#reconnecting = false;
    for (const one of this.#waiting) one.fail(new ConnectionLost(error.message, error));
    this.#waiting.clear();
  }
}

/** @param {string | URL} server @param {boolean} [resume] lost turns go on */
export function websocketUrl(server, resume = false) {
  const text = String(server).trim();
  try {
    const url = new URL(/:\/\/|^\//.test(text) ? text : `ws://${text}`);
    const scheme = url.protocol.replace("http", "ws");
    const path = url.pathname === "/" ? "/v1/tts" : url.pathname;
    if (resume && !url.searchParams.has("resume")) url.searchParams.set("resume", "on");
    if (/^wss?:$/.test(scheme)) return `${scheme}//${url.host}${path}${url.search}`;
  } catch {
    // said below
  }
  throw new ClientError(`the server is a ws(s) or http(s) URL or host:port, found "${text}"`);
}

/** @param {any} apiKey */
function subprotocols(apiKey) {
  if (apiKey === undefined) return [SUBPROTOCOL];
  // Without the key, for logs.
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(apiKey)) {
    throw new ClientError("an API key consists of letters, digits and !#$%&'*+-.^_`|~");
  }
  return [SUBPROTOCOL, KEY_SUBPROTOCOL_PREFIX + apiKey];
}

const NAMES = (
  "model voice language instructions seed sampling temperature topK topP repetitionPenalty " +
  "predictor textFilter textNormalization lexicon lexicons layout trimSilence loudness pacing " +
  "wordTimes resume speed leadMs traceparent"
).split(" ");

/** @param {object} options */
function renamed(options) {
  /** @type {Record<string, unknown>} */
  const wire = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (!NAMES.includes(name)) throw new ClientError(`there is no option \`${name}\``);
    const key = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    wire[key] = value && /sampling|predictor/.test(name) ? renamed(value) : value;
  }
  return wire;
}
