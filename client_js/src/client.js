import { websocketUrl } from "./address.js";
import { Connection } from "./connection.js";
import { ClientError } from "./errors.js";
import { KEY_SUBPROTOCOL_PREFIX, SUBPROTOCOL, encode } from "./protocol.js";
import { Turn } from "./turn.js";

/** @import { Socket } from "./connection.js" */
/** @import { ServerError, SessionStart, Warning } from "./protocol.js" */
/** @import { TextSource } from "./turn.js" */

/**
 * temperature 0 is greedy; topK 0 and topP 1 mean no limit.
 *
 * @typedef {{temperature?: number, topK?: number, topP?: number}} PredictorOptions
 */
/**
 * @typedef {object} TalkerOptions
 * @property {number} [repetitionPenalty]
 * @property {PredictorOptions} [predictor]
 *
 * @typedef {PredictorOptions & TalkerOptions} SamplingOptions
 */
/**
 * Settings of a session; what is left out is the server's choice. PROTOCOL.md, `session.start`, says
 * what each takes.
 *
 * @typedef {object} SessionOptions
 * @property {string} [model] one of `ready.models`, if there are several; else the voice picks
 * @property {string} [voice]
 * @property {string} [language]
 * @property {string} [instructions] how to speak, in words, for models that can
 * @property {number} [seed] same seed, text and settings: same audio
 * @property {SamplingOptions} [sampling]
 * @property {"on" | "off"} [textFilter] leave out markup, code, emoji, bare URLs (on)
 * @property {"auto" | "streaming" | "full_text"} [layout]
 * @property {number} [leadMs] how much audio may be sent ahead of the listener (3000)
 */
/**
 * @typedef {object} ConnectOptions
 * @property {string} [apiKey]
 * @property {new (url: string, protocols: string[]) => Socket} [WebSocket] by default the global
 *   one, which Node has since version 22; before, pass the one of the package `ws`
 * @property {number} [connectTimeoutMs] until the server is ready (10,000)
 * @property {number} [replyTimeoutMs] until it answers settings or an interrupt (10,000)
 * @property {(notice: Warning | ServerError) => void} [onWarning] hears every warning, and errors
 *   that are about nothing in particular
 */

// What RFC 9110 allows in a token, which each subprotocol is.
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** A session with a server. */
export class RealtimeTTS {
  #connection;
  #replyTimeoutMs;
  #turns = 0;

  /**
   * Use `RealtimeTTS.connect`.
   *
   * @param {Connection} connection
   * @param {number} replyTimeoutMs
   */
  constructor(connection, replyTimeoutMs) {
    this.#connection = connection;
    this.#replyTimeoutMs = replyTimeoutMs;
  }

  /**
   * Connect, and set the session up.
   *
   * @param {string | URL} server ws(s) or http(s) URL, or host:port; without a path `/v1/tts`
   * @param {SessionOptions & ConnectOptions} [options]
   * @returns {Promise<RealtimeTTS>}
   * @throws {HandshakeRefused} if there is no session, for a reason a page cannot see
   * @throws {OverloadedError} if the server says when to try again
   * @throws {RequestError} for settings that the server cannot do
   * @throws {ClientError} for an address, key or option that cannot be used
   * @throws {ProtocolError} for a setting out of range
   */
  static async connect(server, options = {}) {
    const {
      apiKey,
      WebSocket: WebSocketClass = /** @type {any} */ (globalThis).WebSocket,
      connectTimeoutMs = 10_000,
      replyTimeoutMs = 10_000,
      onWarning = () => {},
      ...settings
    } = options;
    if (!WebSocketClass) {
      throw new ClientError(
        'there is no WebSocket here: pass one, such as `import WebSocket from "ws"`',
      );
    }
    const start = sessionStart(settings);
    const url = websocketUrl(server);
    const socket = new WebSocketClass(url, subprotocols(apiKey));
    const connection = new Connection(socket, url, onWarning);
    try {
      await connection.nextReady(connectTimeoutMs);
      if (Object.keys(start).length > 1) await connection.configure(start, replyTimeoutMs);
    } catch (error) {
      connection.close();
      throw error;
    }
    return new RealtimeTTS(connection, replyTimeoutMs);
  }

  /** The server's latest `ready`: voices, languages, effective settings, limits. */
  get ready() {
    return this.#connection.ready;
  }

  /** Whether the socket is open, as far as is known. */
  get connected() {
    return this.#connection.lost === null;
  }

  /**
   * Change settings for turns that begin from now on. If the server cannot, all stays as it was.
   *
   * @param {SessionOptions} options
   * @throws {RequestError}
   */
  async configure(options) {
    await this.#connection.configure(sessionStart(options), this.#replyTimeoutMs);
  }

  /**
   * A new turn. It is spoken after those before it.
   *
   * @param {{turnId?: string}} [options] `turnId`: 1 to 64 printable ASCII characters, new to this
   *   session
   * @throws {ConnectionLost}
   */
  turn({ turnId } = {}) {
    if (this.#connection.lost) throw this.#connection.lost;
    this.#turns += 1;
    return new Turn(this.#connection, turnId ?? `turn-${this.#turns}`, this.#replyTimeoutMs);
  }

  /**
   * Speak a text, or text deltas as they come. Iterate over the turn for its packets. If `text`
   * throws, so does the turn.
   *
   * @param {TextSource} text
   * @throws {ConnectionLost}
   */
  speak(text) {
    return this.turn().feed(text);
  }

  /** Close the socket; turns still running end with ConnectionLost. Idempotent. */
  close() {
    this.#connection.close();
  }
}

/** @param {string | undefined} apiKey */
function subprotocols(apiKey) {
  if (apiKey === undefined) return [SUBPROTOCOL];
  if (!TOKEN.test(apiKey)) {
    // The key itself stays out of the message: messages end up in logs.
    const says = "an API key for use here consists of letters, digits and !#$%&'*+-.^_`|~";
    throw new ClientError(says);
  }
  return [SUBPROTOCOL, KEY_SUBPROTOCOL_PREFIX + apiKey];
}

/** @type {Record<string, string>} */
const NAMES = {
  model: "model",
  voice: "voice",
  language: "language",
  instructions: "instructions",
  seed: "seed",
  sampling: "sampling",
  predictor: "predictor",
  temperature: "temperature",
  topK: "top_k",
  topP: "top_p",
  repetitionPenalty: "repetition_penalty",
  textFilter: "text_filter",
  layout: "layout",
  leadMs: "lead_ms",
};

/** @param {SessionOptions} options @returns {SessionStart} */
function sessionStart(options) {
  /** @type {SessionStart} */
  const start = { type: "session.start", ...renamed(options) };
  encode(start); // so that a value out of range is heard of before anything is sent
  return start;
}

/** @param {object} options @returns {Record<string, unknown>} */
function renamed(options) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.flatMap(([name, value]) => {
      const wire = Object.hasOwn(NAMES, name) ? NAMES[name] : undefined;
      if (!wire) throw new ClientError(`there is no option \`${name}\``);
      return [[wire, value?.constructor === Object ? renamed(value) : value]];
    }),
  );
}
