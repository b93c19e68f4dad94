/** @import * as api from "../types/api.js" */
/** @import * as internal from "../types/internal.js" */
/** @import * as wire from "../types/messages.js" */

export const SUBPROTOCOL = "realtime-tts.v1";
export const KEY_SUBPROTOCOL_PREFIX = "realtime-tts.key.";
export const SAMPLE_RATE = 24_000;
export const PACKET_BYTES = 4_096;

/** The fields that each message needs, by example. @type {Record<string, object>} */
export const SHAPES = {
  ready: {
    voices: [""],
    languages: [""],
    settings: {},
    limits: { max_message_bytes: 0, max_text_chars: 0, messages_per_second: 0, message_burst: 0 },
  },
  "turn.started": { turn_id: "", layout: "" },
  "turn.words": { turn_id: "", words: [{ text: "", start_ms: 0, end_ms: 0 }] },
  "turn.state": { turn_id: "", samples: 0, text_chars: 0, state: "" },
  "turn.interrupted": {
    turn_id: "",
    samples_sent: 0,
    played_ms: 0,
    text_spoken: "",
    text_remaining: "",
  },
  "turn.done": { turn_id: "", reason: "", samples: 0, underruns: 0, held_ms: 0, text_chars: 0 },
  warning: { code: "", message: "" },
  error: { code: "", message: "", fatal: false, retryable: false },
};

/** @param {string} data @returns {wire.ServerMessage | null} */
export function parseServerMessage(data) {
  let message;
  try {
    message = JSON.parse(data);
  } catch {
    throw new ProtocolError(`message: expected JSON, found ${data.slice(0, 40)}`);
  }
  const type = message?.type;
  check("`type`", type, "");
  if (!Object.hasOwn(SHAPES, type)) return null; // a newer server's
  check(type, message, SHAPES[type]);
  return message;
}

/** @param {string} path @param {any} found @param {any} example */
function check(path, found, example) {
  const many = Array.isArray(example);
  if (found === null || typeof found !== typeof example || Array.isArray(found) !== many) {
    const kind = many ? "array" : typeof example;
    throw new ProtocolError(
      `${path}: expected ${kind}, found ${JSON.stringify(found)?.slice(0, 40)}`,
    );
  }
  if (many) for (const each of found) check(path, each, example[0]);
  else if (typeof example === "object")
    for (const key in example) check(`${path}.${key}`, found[key], example[key]);
}

export class RealtimeTTSError extends Error {
  textSpoken = "";
  textRemaining = "";

  /** @param {string} message @param {internal.ErrorDetails} [details] */
  constructor(message, { code = "error", retryable = false, retryAfterMs = 0, cause } = {}) {
    super(message, { cause });
    this.name = new.target.name;
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
  }
}

export class ClientError extends RealtimeTTSError {}
export class ProtocolError extends RealtimeTTSError {}
export class HandshakeRefused extends RealtimeTTSError {
  /** @override */ code = "handshake_refused";
  /** @override */ retryable = true;
}
export class RequestError extends RealtimeTTSError {}
export class OverloadedError extends RealtimeTTSError {}
export class TurnError extends RealtimeTTSError {}
export class ConnectionLost extends RealtimeTTSError {}

/** @template T @returns {internal.Deferred<T>} */
export function deferred() {
  const made = /** @type {any} */ ({});
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  made.promise.catch(() => {}); // there may be no waiter
  return made;
}

export const SAMPLES_PER_MS = SAMPLE_RATE / 1000;
// Mostly fewer: rather too much counts as heard.
const CHARACTERS_PER_SAMPLE = 15 / SAMPLE_RATE;

/** @param {api.Played} position @returns {wire.Position} */
export function onWire({ playedMs, playedSamples }) {
  for (const value of [playedMs, playedSamples]) {
    if (value !== undefined && !(value >= 0 && value < Infinity)) {
      throw new ClientError(`a position is a number, 0 or more; found ${value}`);
    }
  }
  return { played_ms: playedMs, played_samples: playedSamples && Math.round(playedSamples) };
}

/** An estimate. @param {string} text @param {number} samples @param {number} [all] */
export function split(text, samples, all) {
  const heard = Math.ceil(samples * (all ? text.length / all : CHARACTERS_PER_SAMPLE));
  // Some scripts have no spaces.
  const cut = heard < text.length ? text.slice(0, heard).search(/\S{0,20}$/u) : text.length;
  return { textSpoken: text.slice(0, cut), textRemaining: text.slice(cut) };
}
