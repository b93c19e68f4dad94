import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ProtocolError, SHAPES, parseServerMessage } from "../src/protocol.js";
import { READY, fixtures } from "./fake-socket.js";

const DOCUMENT = readFileSync(new URL("../../PROTOCOL.md", import.meta.url), "utf8");

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

test("every message of the document is known, and every field that is looked at is its", () => {
  const names = [...new Set(fixtures.server.map((example) => example.section))].sort();
  assert.deepEqual(names, Object.keys(SHAPES).sort());
  for (const [type, fields] of Object.entries(SHAPES)) {
    const section = DOCUMENT.split(`\n### \`${type}\`\n`)[1].split(/\n##/)[0];
    for (const name of Object.keys(fields)) {
      assert.match(section, new RegExp(`^\\|.*\`${name}[\`.]`, "m"), `${type}.${name}`);
    }
  }
});

const without = (message, key) => ({ ...message, [key]: undefined });
const BAD_SERVER_MESSAGES = [
  "",
  "{",
  "[]",
  "null",
  "5",
  "{}",
  '{"type": 5}',
  JSON.stringify(without(READY, "limits")),
  JSON.stringify({ ...READY, limits: null }),
  JSON.stringify({ ...READY, limits: [] }),
  JSON.stringify({ ...READY, voices: ["a", 5] }),
  JSON.stringify({ ...READY, voices: {} }),
  '{"type": "turn.started", "turn_id": "a"}',
  '{"type": "turn.words", "turn_id": "a", "words": [{"text": 5, "start_ms": 0, "end_ms": 1}]}',
  '{"type": "warning", "code": "a", "message": 5}',
  '{"type": "error", "code": "a", "message": "b", "fatal": 1, "retryable": false}',
];

for (const data of BAD_SERVER_MESSAGES) {
  test(`${data.slice(0, 60) || "nothing"} from a server is an error that shows it`, () => {
    assert.throws(() => parseServerMessage(data), /ProtocolError.*: expected .*, found/);
  });
}

for (const type of ["words", "toString", "__proto__"]) {
  test(`a message of type ${type} is one to skip`, () => {
    assert.equal(parseServerMessage(JSON.stringify({ type })), null);
  });
}

test("nothing but a ProtocolError comes out of the parser", () => {
  const values = [null, true, -1, 1e999, "x", "\ud800", [], {}, [[{}]], { type: "ready" }];
  const keys = Object.keys(Object.assign({}, ...Object.values(SHAPES)));
  for (const type of Object.keys(SHAPES)) {
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
