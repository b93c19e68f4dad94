/**
 * The messages of `realtime-tts.v1`, in the order of PROTOCOL.md, and how to read and write them.
 *
 * The client validates what it sends as strictly as the server does, so it cannot send what would
 * be refused; of what it receives it checks the fields it needs and ignores the rest, so that a
 * newer server may say more.
 */

import { ProtocolError } from "./errors.js";

export const SUBPROTOCOL = "realtime-tts.v1";
/** Before an API key: a browser cannot set headers, it can only offer subprotocols. */
export const KEY_SUBPROTOCOL_PREFIX = "realtime-tts.key.";
export const SAMPLE_RATE = 24_000;
/** The largest packet. Samples are mono, 16 bit, little-endian. */
export const PACKET_BYTES = 4_096;

export const CloseCode = Object.freeze({
  DONE: 1000,
  GOING_AWAY: 1001,
  INVALID_UTF8: 1007,
  POLICY: 1008,
  TOO_BIG: 1009,
  INTERNAL: 1011,
  TRY_AGAIN: 1013,
});

/* Client -> server ------------------------------------------------------------------------- */

/** @typedef {{temperature?: number, top_k?: number, top_p?: number}} Predictor */
/** @typedef {Predictor & {repetition_penalty?: number, predictor?: Predictor}} Sampling */
/**
 * @typedef {object} SessionStart
 * @property {"session.start"} type
 * @property {string} [model]
 * @property {string} [voice]
 * @property {string} [language]
 * @property {string} [instructions]
 * @property {number} [seed]
 * @property {Sampling} [sampling]
 * @property {"on" | "off"} [text_filter]
 * @property {"auto" | "streaming" | "full_text"} [layout]
 * @property {number} [lead_ms]
 */
/** @typedef {{type: "text", text: string, turn_id?: string, end?: boolean}} Text */
/** @typedef {{type: "flush", turn_id?: string}} Flush */
/** @typedef {{type: "turn.end", turn_id?: string}} TurnEnd */
/**
 * @typedef {object} Position how much of a turn the listener has heard; samples count if both given
 * @property {number} [played_ms]
 * @property {number} [played_samples]
 */
/** @typedef {Position & {type: "interrupt", turn_id?: string}} Interrupt */
/** @typedef {Position & {type: "played", turn_id?: string}} Played */
/** @typedef {{type: "session.close"}} SessionClose */
/**
 * @typedef {SessionStart | Text | Flush | TurnEnd | Interrupt | Played | SessionClose} ClientMessage
 */

/* Server -> client ------------------------------------------------------------------------- */

/**
 * @typedef {object} Limits characters are Unicode code points
 * @property {number} max_message_bytes
 * @property {number} max_text_chars
 * @property {number} messages_per_second
 * @property {number} message_burst
 */
/**
 * @typedef {object} Ready
 * @property {"ready"} type
 * @property {string} session_id
 * @property {string} protocol
 * @property {string} server
 * @property {string} model
 * @property {string[]} [models]
 * @property {string[]} voices
 * @property {string[]} languages
 * @property {Record<string, unknown>} settings
 * @property {number} sample_rate
 * @property {string} encoding
 * @property {number} packet_bytes
 * @property {Limits & Record<string, number>} limits
 */
/** @typedef {{type: "turn.started", turn_id: string, layout: string}} TurnStarted */
/**
 * @typedef {object} TurnInterrupted
 * @property {"turn.interrupted"} type
 * @property {string} turn_id
 * @property {number} samples_sent
 * @property {number} played_ms
 * @property {string} text_spoken an estimate
 * @property {string} text_remaining
 */
/**
 * @typedef {object} TurnDone
 * @property {"turn.done"} type
 * @property {string} turn_id
 * @property {string} reason
 * @property {number} samples
 * @property {number | null} ttfa_ms
 * @property {number} underruns
 * @property {number} held_ms
 * @property {number} text_chars
 */
/** @typedef {{type: "warning", code: string, message: string, turn_id?: string}} Warning */
/**
 * @typedef {object} ServerError
 * @property {"error"} type
 * @property {string} code
 * @property {string} message
 * @property {boolean} fatal
 * @property {boolean} retryable
 * @property {number} [retry_after_ms]
 * @property {string} [turn_id]
 */
/**
 * @typedef {Ready | TurnStarted | TurnInterrupted | TurnDone | Warning | ServerError} ServerMessage
 */

/* What each field takes -------------------------------------------------------------------- */

/**
 * @typedef {object} Field
 * @property {string} expected in words
 * @property {(value: unknown) => boolean} accepts
 * @property {boolean} [optional] may be absent or null
 * @property {Fields} [inside] the fields of an object
 */
/** @typedef {Record<string, Field>} Fields */

/** @param {string} expected @param {(value: unknown) => boolean} accepts @returns {Field} */
const field = (expected, accepts) => ({ expected, accepts });
/** @param {Field} of @returns {Field} */
const optional = (of) => ({ ...of, optional: true });
/** @param {...string} words */
const oneOf = (...words) => {
  const expected = words.map((word) => `"${word}"`).join(" or ");
  return field(expected, (v) => words.includes(/** @type {any} */ (v)));
};
/** @param {number} min @param {number} max */
const whole = (min, max) =>
  field(`a whole number from ${min} to ${max}`, (v) => Number.isInteger(v) && within(v, min, max));
/** @param {number} min @param {number} max */
const number = (min, max) =>
  field(`a number from ${min} to ${max}`, (v) => typeof v === "number" && within(v, min, max));
/** @param {unknown} value @param {number} min @param {number} max */
const within = (value, min, max) => Number(value) >= min && Number(value) <= max;
/** @param {Fields} inside @returns {Field} */
const object = (inside) => ({ ...field("an object", isObject), inside });
/** @param {unknown} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @param {unknown} value */
const isStrings = (value) => Array.isArray(value) && value.every((v) => typeof v === "string");

const string = field("a string", (v) => typeof v === "string");
const strings = field("an array of strings", isStrings);
const boolean = field("true or false", (v) => typeof v === "boolean");
const amount = field("a number, 0 or more", (v) => typeof v === "number" && within(v, 0, 1e12));
const count = field("a whole number, 0 or more", (v) => Number.isSafeInteger(v) && Number(v) >= 0);
const name = field("a string of 1 to 128 characters", (v) => {
  const chars = typeof v === "string" ? [...v].length : 0;
  return chars >= 1 && chars <= 128;
});
const turnId = field(
  "1 to 64 printable ASCII characters without space",
  (v) => typeof v === "string" && /^[!-~]{1,64}$/.test(v),
);
const topP = field("a number above 0, at most 1", (v) => typeof v === "number" && v > 0 && v <= 1);
const predictor = {
  temperature: optional(number(0, 2)),
  top_k: optional(whole(0, 1_000_000)),
  top_p: optional(topP),
};
const sampling = {
  ...predictor,
  repetition_penalty: optional(number(0.5, 2)),
  predictor: optional(object(predictor)),
};
const position = { played_ms: optional(amount), played_samples: optional(count) };

/** @type {Record<ClientMessage["type"], Fields>} */
export const CLIENT_FIELDS = {
  "session.start": {
    model: optional(name),
    voice: optional(name),
    language: optional(name),
    instructions: optional(string),
    seed: optional(whole(0, Number.MAX_SAFE_INTEGER)),
    sampling: optional(object(sampling)),
    text_filter: optional(oneOf("on", "off")),
    layout: optional(oneOf("auto", "streaming", "full_text")),
    lead_ms: optional(whole(200, 3_600_000)),
  },
  text: { text: string, turn_id: optional(turnId), end: optional(boolean) },
  flush: { turn_id: optional(turnId) },
  "turn.end": { turn_id: optional(turnId) },
  interrupt: { turn_id: optional(turnId), ...position },
  played: { turn_id: optional(turnId), ...position },
  "session.close": {},
};

/** @type {Record<ServerMessage["type"], Fields>} */
export const SERVER_FIELDS = {
  ready: {
    session_id: string,
    protocol: string,
    server: string,
    model: string,
    voices: strings,
    languages: strings,
    settings: object({}),
    sample_rate: count,
    encoding: string,
    packet_bytes: count,
    limits: object({
      max_message_bytes: count,
      max_text_chars: count,
      messages_per_second: count,
      message_burst: count,
    }),
  },
  "turn.started": { turn_id: string, layout: string },
  "turn.interrupted": {
    turn_id: string,
    samples_sent: count,
    played_ms: amount,
    text_spoken: string,
    text_remaining: string,
  },
  "turn.done": {
    turn_id: string,
    reason: string,
    samples: count,
    ttfa_ms: field("a number or null", (v) => v === null || amount.accepts(v)),
    underruns: count,
    held_ms: amount,
    text_chars: count,
  },
  warning: { code: string, message: string, turn_id: optional(string) },
  error: {
    code: string,
    message: string,
    fatal: boolean,
    retryable: boolean,
    retry_after_ms: optional(count),
    turn_id: optional(string),
  },
};

/* Reading and writing ---------------------------------------------------------------------- */

/**
 * The JSON text of a message. A lone surrogate, half of a character that was cut, travels as it is:
 * the server joins it with the other half.
 *
 * @param {ClientMessage} message
 * @returns {string}
 * @throws {ProtocolError} for what a server would refuse or ignore
 */
export function encode(message) {
  const fields = CLIENT_FIELDS[message.type];
  if (!Object.hasOwn(CLIENT_FIELDS, message.type)) throw unknownType(message.type, CLIENT_FIELDS);
  for (const key of unknownFields(message, fields)) {
    throw new ProtocolError(`${message.type}: there is no field \`${key}\``, "bad_message", key);
  }
  check(message.type, message, fields);
  if (message.type === "played" && (message.played_ms ?? message.played_samples ?? null) === null) {
    throw new ProtocolError(
      "played: expected played_ms or played_samples, found neither",
      "bad_message",
    );
  }
  return JSON.stringify(message);
}

/**
 * The message in a text frame from the server; unknown fields are left in it and mean nothing.
 *
 * @param {unknown} data
 * @returns {ServerMessage}
 * @throws {ProtocolError} code `unknown_type` means that the server is newer: skip that message
 */
export function parseServerMessage(data) {
  const message = parseObject(data);
  const type = message["type"];
  if (typeof type !== "string") {
    throw new ProtocolError(
      `\`type\` must be a string, found ${show(type)}`,
      "bad_message",
      "type",
    );
  }
  if (!Object.hasOwn(SERVER_FIELDS, type)) throw unknownType(type, SERVER_FIELDS);
  check(type, message, SERVER_FIELDS[/** @type {ServerMessage["type"]} */ (type)]);
  return /** @type {any} */ (message);
}

/** @param {unknown} data @returns {Record<string, unknown>} */
function parseObject(data) {
  let value;
  try {
    value = JSON.parse(String(data));
  } catch (error) {
    throw new ProtocolError(`not valid JSON: ${/** @type {Error} */ (error).message}`, "bad_json");
  }
  if (!isObject(value)) {
    throw new ProtocolError(`expected a JSON object, found ${show(value)}`, "bad_json");
  }
  return value;
}

/** @param {string} type @param {Record<string, Fields>} known */
function unknownType(type, known) {
  const names = Object.keys(known).join(", ");
  return new ProtocolError(`unknown type ${show(type)}; known are ${names}`, "unknown_type");
}

/** @param {string} type @param {object} value @param {Fields} fields @param {string} [path] */
function check(type, value, fields, path = "") {
  for (const [key, rule] of Object.entries(fields)) {
    const found = /** @type {Record<string, unknown>} */ (value)[key];
    if (rule.optional && (found === undefined || found === null)) continue;
    if (!rule.accepts(found)) {
      const says = `${type}: \`${path}${key}\` must be ${rule.expected}, found ${show(found)}`;
      throw new ProtocolError(says, "bad_message", path + key);
    }
    if (rule.inside) check(type, /** @type {object} */ (found), rule.inside, `${path}${key}.`);
  }
}

/** @param {object} value @param {Fields} fields @param {string} [path] @returns {string[]} */
function unknownFields(value, fields, path = "") {
  return Object.entries(value).flatMap(([key, found]) => {
    const rule = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (!rule) return path === "" && key === "type" ? [] : [path + key];
    return rule.inside && isObject(found)
      ? unknownFields(found, rule.inside, `${path}${key}.`)
      : [];
  });
}

/** @param {unknown} value */
function show(value) {
  if (value === undefined) return "none";
  if (Array.isArray(value)) return "an array";
  if (isObject(value)) return "an object";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length <= 40 ? text : `${text.slice(0, 37)}...`;
}
