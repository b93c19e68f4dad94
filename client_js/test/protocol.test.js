import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ProtocolError } from "../src/errors.js";
import {
  CLIENT_FIELDS,
  CloseCode,
  SERVER_FIELDS,
  encode,
  parseServerMessage,
} from "../src/protocol.js";
import { READY, fixtures } from "./fake-socket.js";

const DOCUMENT = readFileSync(new URL("../../PROTOCOL.md", import.meta.url), "utf8");

test("every client example of PROTOCOL.md can be encoded, and is what it says", () => {
  assert.ok(fixtures.client.length >= Object.keys(CLIENT_FIELDS).length);
  for (const { message } of fixtures.client) {
    assert.deepEqual(JSON.parse(encode(message)), message);
  }
});

test("every server example of PROTOCOL.md can be parsed, and is what it says", () => {
  for (const { message } of fixtures.server) {
    assert.deepEqual(parseServerMessage(JSON.stringify(message)), message);
  }
  for (const { steps } of fixtures.conversations) {
    for (const step of steps.filter((step) => step.server)) {
      assert.deepEqual(parseServerMessage(JSON.stringify(step.server)), step.server);
    }
  }
});

test("there is an example for every message, and no message without one", () => {
  const names = (examples) => [...new Set(examples.map((example) => example.section))].sort();
  assert.deepEqual(names(fixtures.client), Object.keys(CLIENT_FIELDS).sort());
  assert.deepEqual(names(fixtures.server), Object.keys(SERVER_FIELDS).sort());
});

test("every field that is checked is one of the document's, and the other way round", () => {
  for (const [type, fields] of Object.entries({ ...CLIENT_FIELDS, ...SERVER_FIELDS })) {
    const section = DOCUMENT.split(`\n### \`${type}\`\n`)[1].split(/\n##/)[0];
    for (const name of Object.keys(fields)) {
      assert.match(section, new RegExp(`^\\|.*\`${name}[\`.]`, "m"), `${type}.${name}`);
    }
  }
  const examples = [...fixtures.client, ...fixtures.server];
  for (const { section, message } of examples) {
    const fields = { ...CLIENT_FIELDS, ...SERVER_FIELDS }[section];
    assert.deepEqual(
      Object.keys(message).filter((key) => key !== "type" && !fields[key]),
      [],
    );
  }
});

test("the close codes are those of the document", () => {
  for (const code of Object.values(CloseCode))
    assert.match(DOCUMENT, new RegExp(`^\\| ${code} \\|`, "m"));
});

const TURN_ID = "`turn_id` must be 1 to 64 printable ASCII characters without space";
const BAD_CLIENT_MESSAGES = [
  [{ type: "speak", text: "a" }, "unknown_type", 'unknown type "speak"; known are session.start'],
  [{ type: "toString" }, "unknown_type", 'unknown type "toString"'],
  [{ type: "__proto__" }, "unknown_type", "unknown type"],
  [{ type: "text" }, "bad_message", "text: `text` must be a string, found none"],
  [{ type: "text", text: 5 }, "bad_message", "text: `text` must be a string, found 5"],
  [
    { type: "text", text: "a", end: "yes" },
    "bad_message",
    '`end` must be true or false, found "yes"',
  ],
  [{ type: "text", text: "a", turn_id: "a b" }, "bad_message", TURN_ID],
  [{ type: "text", text: "a", turn_id: "a\n" }, "bad_message", TURN_ID],
  [{ type: "text", text: "a", turn_id: "x".repeat(65) }, "bad_message", TURN_ID],
  [{ type: "text", text: "a", voise: 1 }, "bad_message", "text: there is no field `voise`"],
  [{ type: "played" }, "bad_message", "expected played_ms or played_samples, found neither"],
  [{ type: "played", played_ms: null }, "bad_message", "found neither"],
  [{ type: "played", played_ms: NaN }, "bad_message", "`played_ms` must be a number, 0 or more"],
  [{ type: "played", played_ms: -1 }, "bad_message", "found -1"],
  [
    { type: "interrupt", played_samples: 1.5 },
    "bad_message",
    "a whole number, 0 or more, found 1.5",
  ],
  [{ type: "interrupt", played_samples: Infinity }, "bad_message", "found Infinity"],
  [{ type: "session.start", voice: "" }, "bad_message", "`voice` must be a string of 1 to 128"],
  [{ type: "session.start", seed: -1 }, "bad_message", "`seed` must be a whole number from 0"],
  [{ type: "session.start", seed: 2 ** 53 }, "bad_message", "`seed` must be a whole number from 0"],
  [
    { type: "session.start", layout: "fast" },
    "bad_message",
    '`layout` must be "auto" or "streaming"',
  ],
  [
    { type: "session.start", lead_ms: 199 },
    "bad_message",
    "`lead_ms` must be a whole number from 200",
  ],
  [
    { type: "session.start", sampling: [] },
    "bad_message",
    "`sampling` must be an object, found an array",
  ],
  [
    { type: "session.start", sampling: { temperature: 2.1 } },
    "bad_message",
    "`sampling.temperature` must be a number from 0 to 2, found 2.1",
  ],
  [
    { type: "session.start", sampling: { predictor: { top_p: 0 } } },
    "bad_message",
    "`sampling.predictor.top_p` must be a number above 0, at most 1, found 0",
  ],
  [
    { type: "session.start", sampling: { predictor: { type: 1 } } },
    "bad_message",
    "there is no field `sampling.predictor.type`",
  ],
];

for (const [message, code, says] of BAD_CLIENT_MESSAGES) {
  test(`the client does not send ${JSON.stringify(message).slice(0, 80)}`, () => {
    assert.throws(
      () => encode(message),
      (error) =>
        error instanceof ProtocolError && error.code === code && error.message.includes(says),
    );
  });
}

const without = (message, key) => ({ ...message, [key]: undefined });
const BAD_SERVER_MESSAGES = [
  ["", "bad_json"],
  ["{", "bad_json"],
  ["[]", "bad_json"],
  ["null", "bad_json"],
  ["5", "bad_json"],
  ["{}", "bad_message"],
  ['{"type": 5}', "bad_message"],
  ['{"type": "words"}', "unknown_type"],
  ['{"type": "toString"}', "unknown_type"],
  ['{"type": "__proto__"}', "unknown_type"],
  [JSON.stringify(without(READY, "limits")), "bad_message"],
  [JSON.stringify({ ...READY, voices: ["a", 5] }), "bad_message"],
  ['{"type": "turn.started", "turn_id": "a"}', "bad_message"],
  ['{"type": "warning", "code": "a", "message": 5}', "bad_message"],
  ['{"type": "error", "code": "a", "message": "b", "fatal": 1, "retryable": false}', "bad_message"],
];

for (const [data, code] of BAD_SERVER_MESSAGES) {
  test(`${code} for ${data.slice(0, 60)} from a server`, () => {
    assert.throws(
      () => parseServerMessage(data),
      (error) => error instanceof ProtocolError && error.code === code,
    );
  });
}

test("nothing but a ProtocolError comes out of the parser", () => {
  const values = [null, true, -1, 1e999, "x", "\ud800", [], {}, [[{}]], { type: "ready" }];
  const keys = Object.keys(Object.assign({}, ...Object.values(SERVER_FIELDS)));
  for (const type of Object.keys(SERVER_FIELDS)) {
    for (const value of values) {
      for (const key of keys) {
        const message = { ...READY, ...fixtures.server[1].message, type, [key]: value };
        try {
          parseServerMessage(JSON.stringify(message));
        } catch (error) {
          assert.ok(error instanceof ProtocolError, String(error));
        }
      }
    }
  }
});

test("what a newer server adds is no error", () => {
  const more = { type: "warning", code: "new", message: "m", hint: { a: 1 }, turn_id: null };
  assert.equal(parseServerMessage(JSON.stringify(more)).code, "new");
});

test("half an emoji is sent as it is, for the server to join with its other half", () => {
  const data = encode({ type: "text", text: "a\ud83d" });
  assert.equal(Buffer.from(data, "utf8").toString("utf8"), data, "valid UTF-8");
  assert.equal(JSON.parse(data).text, "a\ud83d");
});
