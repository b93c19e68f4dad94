/** The server behind this page: who it is, which key it wants, what is wrong with it. */

import { ConnectionLost, RealtimeTTS } from "/client/index.js";

const KEY = "realtime-tts.key";
const NO_KEY =
  "This cannot be a key of the server: keys have only ASCII letters, digits and marks, and no spaces.";
const START = "Start it with: realtime-tts serve";

/** Speech goes on if a server is back so soon. */
const PATIENCE_MS = 10_000;

/** What went wrong, in words for people. `code`: gone, key, origin, not_ready, other. */
export class Trouble extends Error {
  /** @param {string} code @param {string} message @param {unknown} [cause] @param {number} [waitMs] */
  constructor(code, message, cause, waitMs = 0) {
    super(message, { cause });
    this.code = code;
    /** After so long another try is of use. */
    this.waitMs = waitMs;
  }
}

/**
 * What /v1/voices says: the checkpoints, the voices, and whether recordings become voices.
 *
 * @typedef {{model: string, variant: string, instructions: boolean}} Model
 * @typedef {{id: string, kind: "speaker" | "registered", model: string, in_context?: boolean}} Voice
 *
 * @typedef {object} About
 * @property {string} model
 * @property {Model[]} models
 * @property {boolean} random_weights
 * @property {boolean} clones
 * @property {string[]} voices
 * @property {Voice[]} details
 * @property {string | null} default_voice
 * @property {string[]} languages
 */

/** Where a tab keeps the key; null where the browser lets pages keep nothing. */
function storage() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

export class Server {
  origin = location.origin;
  /** The key that the server accepted or may accept; empty without. */
  key = storage()?.getItem(KEY) ?? "";
  /** The language model to chat with, where the chat example serves this page. @type {string | null} */
  chatModel = null;

  /** @param {string} key */
  use(key) {
    this.key = key;
    storage()?.setItem(KEY, key);
  }

  /** Model, voices, languages. @returns {Promise<About>} @throws {Trouble} */
  async about() {
    const answer = await this.#ask("/v1/voices");
    if (answer.ok) {
      const model = answer.headers.get("x-chat-model");
      this.chatModel = model && decodeURIComponent(model);
      return answer.json();
    }
    throw await this.#refusal(answer);
  }

  /**
   * Register a voice, of a form with a recording or of an embedding.
   *
   * @param {FormData | {name: string, model: string, embedding: number[]}} voice
   * @returns {Promise<Voice>}
   * @throws {Trouble}
   */
  async makeVoice(voice) {
    const json = { "content-type": "application/json" };
    const given =
      voice instanceof FormData ? { body: voice } : { body: JSON.stringify(voice), headers: json };
    return (await this.#done("/v1/voices", { method: "POST", ...given })).json();
  }

  /** @param {string} id @returns {Promise<{model: string, embedding: number[]}>} @throws {Trouble} */
  async embedding(id) {
    return (await this.#done(`/v1/voices/${encodeURIComponent(id)}/embedding`)).json();
  }

  /** @param {string} id @throws {Trouble} */
  async deleteVoice(id) {
    await this.#done(`/v1/voices/${encodeURIComponent(id)}`, { method: "DELETE" });
  }

  /**
   * A session.
   *
   * @param {Record<string, unknown>} settings
   * @param {(connected: boolean) => void} onConnected told when it is lost, and when it is back
   * @returns {Promise<RealtimeTTS>}
   * @throws {Trouble}
   */
  async connect(settings, onConnected) {
    try {
      return await RealtimeTTS.connect(this.origin, {
        ...settings,
        giveUpAfterMs: PATIENCE_MS,
        onConnected,
        ...(this.key && { apiKey: this.key }),
      });
    } catch (error) {
      throw await this.explained(error);
    }
  }

  /**
   * Any error, in words. A failed handshake tells a page nothing, so HTTP is asked.
   *
   * @param {unknown} error
   */
  async explained(error) {
    if (error instanceof Trouble) return error;
    const { code = "other", message = String(error) } = /** @type {any} */ (error ?? {});
    if (["handshake_refused", "connection_lost", "not_ready"].includes(code)) {
      const cause = await this.about().then(() => null, (/** @type {unknown} */ found) => found);
      if (cause instanceof Trouble) return cause;
      const lost = "The connection was lost; what was not heard is not spoken again. Try again.";
      const refused = "The server took no session, though it answers. Try again.";
      return new Trouble("lost", error instanceof ConnectionLost ? lost : refused, error);
    }
    if (code === "overloaded" || code === "too_many_sessions" || code === "queue_full") {
      const wait = /** @type {any} */ (error).retryAfterMs ?? 0;
      const why = message.replace(/^\w+: /, "").replace(/; try again( later)?$/, ""); // without the code
      return new Trouble("overloaded", `The server is full: ${why}.`, error, wait);
    }
    if (code === "client_error" && /API key/.test(message)) {
      return new Trouble("key", `This cannot be a key of the server: ${message}.`, error);
    }
    return new Trouble("other", sentence(message), error);
  }

  /** An answer that is none of a refusal. @param {string} path @param {RequestInit} [init] */
  async #done(path, init) {
    const answer = await this.#ask(path, init);
    if (answer.ok) return answer;
    throw await this.#refusal(answer, "");
  }

  /** @param {string} path @param {RequestInit} [init] */
  async #ask(path, { headers = {}, ...init } = {}) {
    // With any other key, `fetch` fails as if the server were gone.
    if (!/^[!-~]*$/.test(this.key)) throw new Trouble("key", NO_KEY);
    const keyed = this.key ? { authorization: `Bearer ${this.key}` } : {};
    try {
      return await fetch(path, { cache: "no-store", ...init, headers: { ...headers, ...keyed } });
    } catch (error) {
      throw new Trouble("gone", `The server at ${location.host} does not answer. ${START}`, error);
    }
  }

  /** @param {Response} answer @param {string} [about] what its reason is about */
  async #refusal(answer, about = "the server cannot be used: ") {
    if (answer.status === 401) {
      const wrong = "The server does not know this API key.";
      return new Trouble("key", this.key ? wrong : "The server wants an API key.");
    }
    const body = await answer.json().catch(() => ({}));
    const reason = body.message ?? body.error ?? `it answered ${answer.status}`;
    if (answer.status === 403) return new Trouble("origin", sentence(reason));
    if (answer.status === 503) return new Trouble("not_ready", `Not ready yet: ${reason} …`);
    return new Trouble("other", sentence(about + reason));
  }
}

/** @param {string} text */
function sentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
