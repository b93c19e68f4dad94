import { Connection } from "./connection.js";
import { ClientError, ConnectionLost, KEY_SUBPROTOCOL_PREFIX, SUBPROTOCOL } from "./protocol.js";
import { Turn } from "./turn.js";

/** @import * as api from "../types/api.js" */
/** @import * as internal from "../types/internal.js" */
/** @import * as wire from "../types/messages.js" */

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8_000;

/** @typedef {internal.Opener<Connection>} Opener */

/** @implements {api.RealtimeTTS} */
export class RealtimeTTS {
  #open;
  #options;
  #connection;
  #turns = 0;
  /** @type {Set<Turn>} */
  #waiting = new Set();
  #reconnecting = false;
  #closed = false;
  #timer = 0;

  /** @param {Opener} open @param {Connection} first @param {internal.Defaulted} options */
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
    if (!Socket) throw new ClientError('no WebSocket here: pass one, `import WebSocket from "ws"`');
    const start = sessionStart(given); // before anything is opened
    const url = websocketUrl(server, giveUpAfterMs > 0 && given.resume === undefined);
    const kept = { replyTimeoutMs, giveUpAfterMs, onWarning, onConnected };
    /** @type {Opener} */
    const open = async (settings) => {
      const protocols = subprotocols(typeof apiKey === "function" ? await apiKey() : apiKey);
      const connection = new Connection(new Socket(url, protocols), url, kept);
      try {
        await connection.nextReady(connectTimeoutMs);
        if (Object.keys(settings).length > 1) await connection.configure(settings);
      } catch (error) {
        connection.close();
        throw error;
      }
      return connection;
    };
    return new RealtimeTTS(open, await open(start), kept);
  }

  get ready() {
    return this.#connection.ready;
  }

  get connected() {
    return this.#connection.lost === null;
  }

  /** @param {api.SessionOptions} options */
  async configure(options) {
    await this.#connection.configure(sessionStart(options));
  }

  /** @param {api.TurnOptions} [options] */
  turn({ turnId = `turn-${++this.#turns}` } = {}) {
    if (!/^[!-~]{1,64}$/.test(turnId)) {
      throw new ClientError(`turnId must be 1 to 64 printable ASCII characters, found ${turnId}`);
    }
    const turn = new Turn(turnId, (waits) => this.#wait(waits));
    if (!this.#connection.lost) turn.attach(this.#connection);
    else if (!this.#wait(turn)) throw this.#connection.lost;
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
      this.#options.onConnected(false);
      this.#reconnect();
    };
    return connection;
  }

  /** @param {Turn} turn @returns {boolean} */
  #wait(turn) {
    if (this.#final) return false;
    this.#waiting.add(turn);
    this.#reconnect();
    return true;
  }

  get #final() {
    return this.#closed || !this.#connection.lost?.retryable || !this.#options.giveUpAfterMs;
  }

  async #reconnect() {
    if (this.#reconnecting || this.#final) return;
    this.#reconnecting = true;
    const giveUpAt = performance.now() + this.#options.giveUpAfterMs;
    /** @type {any} */
    let error = this.#connection.lost;
    for (let ms = FIRST_WAIT_MS; error.retryable && performance.now() < giveUpAt; ms *= 2) {
      // Half by chance, lest all clients come at once.
      const wait = (Math.min(ms, LONGEST_WAIT_MS) * (1 + Math.random())) / 2;
      await new Promise((resolve) => {
        this.#timer = setTimeout(resolve, Math.max(error.retryAfterMs, wait));
      });
      const open = this.#open({ ...this.ready.settings, type: "session.start" });
      const connection = await open.catch((caught) => void (error = caught));
      if (connection) return this.#reconnected(connection);
    }
    this.#giveUp(error);
  }

  /** @param {Connection} connection */
  #reconnected(connection) {
    this.#reconnecting = false;
    if (this.#closed) return connection.close();
    this.#connection = this.#use(connection);
    for (const turn of this.#waiting) turn.attach(connection);
    this.#waiting.clear();
    this.#options.onConnected(true);
  }

  /** @param {any} error */
  #giveUp(error) {
    this.#reconnecting = false;
    for (const turn of this.#waiting) turn.fail(new ConnectionLost(error.message, error));
    this.#waiting.clear();
  }
}

/** @param {string | URL} server @param {boolean} [resume] a turn whose socket is lost goes on */
export function websocketUrl(server, resume = false) {
  const text = String(server).trim();
  try {
    const url = new URL(text.includes("://") ? text : `ws://${text}`);
    const scheme = url.protocol.replace("http", "ws");
    const path = url.pathname === "/" ? "/v1/tts" : url.pathname;
    if (resume && !url.searchParams.has("resume")) url.searchParams.set("resume", "on");
    if (/^wss?:$/.test(scheme)) return `${scheme}//${url.host}${path}${url.search}`;
  } catch {
    // said below
  }
  const found = JSON.stringify(text);
  throw new ClientError(`the server is a ws(s) or http(s) URL or host:port, found ${found}`);
}

/** @param {string} [apiKey] */
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

/** @param {api.SessionOptions} options @returns {wire.SessionStart} */
const sessionStart = (options) => ({ type: "session.start", ...renamed(options) });

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
