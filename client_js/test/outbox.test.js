import assert from "node:assert/strict";
import { test } from "node:test";

import { Outbox } from "../src/outbox.js";

const LIMITS = {
  max_message_bytes: 65_536,
  max_text_chars: 16_384,
  messages_per_second: 100, // 90 a second with the margin
  message_burst: 4, // 2 with the share that is kept
};

/** An outbox, what it wrote, and a clock that fires its timer. */
function make(t, limits = {}) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const wrote = [];
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const outbox = new Outbox((message) => wrote.push({ ...message }), { ...LIMITS, ...limits });
  const pass = (ms) => {
    for (let i = 0; i < ms; i++) {
      now += 1;
      t.mock.timers.tick(1);
    }
  };
  const skip = (ms) => (now += ms); // without a timer firing, as on a busy thread
  return {
    outbox,
    wrote,
    pass,
    skip,
    text: () => wrote.map((message) => message.text ?? "").join(""),
  };
}

test("messages within the burst leave at once", (t) => {
  const { outbox, wrote } = make(t);
  outbox.text("a", "x", false);
  outbox.text("a", "y", true);
  assert.deepEqual(wrote, [
    { type: "text", turn_id: "a", text: "x" },
    { type: "text", turn_id: "a", text: "y", end: true },
  ]);
});

test("a client that is too fast stays below the rate and joins what waits", (t) => {
  const { outbox, wrote, pass, text } = make(t);
  const characters = [..."The tide is coming in, slowly but surely. ".repeat(20)];
  for (const character of characters) {
    outbox.text("a", character, false);
    pass(1);
  }
  pass(100);
  assert.equal(text(), characters.join(""));
  const allowed = LIMITS.message_burst + (characters.length / 1000) * LIMITS.messages_per_second;
  assert.ok(wrote.length <= allowed, `${wrote.length} messages, ${allowed} allowed`);
  assert.ok(wrote.length > 30, "and it does not wait for longer than it has to");
});

test("the order is kept, and texts of different turns are not joined", (t) => {
  const { outbox, wrote, pass } = make(t);
  for (const name of ["a", "a", "a", "b"]) outbox.text(name, name, false);
  outbox.send({ type: "flush", turn_id: "b" });
  outbox.text("b", "B", true);
  outbox.text("c", "c", false);
  outbox.text("c", "C", false);
  outbox.send({ type: "turn.end", turn_id: "c" });
  pass(1000);
  assert.deepEqual(
    wrote.map((message) => message.text ?? message.type),
    ["a", "a", "a", "b", "flush", "B", "cC", "turn.end"],
  );
});

test("nothing overtakes what waits, even when its time has come", (t) => {
  const { outbox, pass, skip, text } = make(t);
  for (const character of "abc") outbox.text(character, character, false);
  skip(1000);
  outbox.text("d", "d", false);
  pass(1000);
  assert.equal(text(), "abcd");
});

test("a long silence saves up no more than the burst", (t) => {
  const { outbox, wrote, skip } = make(t);
  skip(1e6);
  for (const character of "abcd") outbox.text("a", character, false);
  assert.equal(wrote.length, 2);
});

test("nothing is joined to a text that ended its turn", (t) => {
  const { outbox, wrote, pass } = make(t, { message_burst: 2 });
  outbox.text("a", "1", false);
  outbox.text("a", "2", false);
  outbox.text("a", "3", true);
  outbox.text("a", "4", false);
  pass(1000);
  assert.deepEqual(
    wrote.map(({ text, end }) => [text, end]),
    [
      ["1", undefined],
      ["23", true],
      ["4", undefined],
    ],
  );
});

test("what is urgent does not wait, and counts", (t) => {
  const { outbox, wrote, pass } = make(t);
  for (const text of "abcd") outbox.text("a", text, false);
  outbox.sendNow({ type: "interrupt", turn_id: "a" });
  assert.equal(wrote.at(-1).type, "interrupt");
  pass(12);
  assert.equal(wrote.length, 3, "the interrupt used up a message");
  pass(100);
  assert.equal(wrote.at(-1).text, "cd");
});

test("what waits of a turn can be dropped, and its text comes back", (t) => {
  const { outbox, wrote, pass } = make(t);
  outbox.text("a", "1", false);
  outbox.text("a", "2", false);
  outbox.text("a", "3", false);
  outbox.text("b", "b", false);
  outbox.text("a", "4", true);
  assert.equal(outbox.drop("a"), "34");
  pass(1000);
  assert.deepEqual(
    wrote.map((message) => message.text),
    ["1", "2", "b"],
  );
});

for (const [limits, units] of [
  [{ max_text_chars: 5 }, 5],
  [{ max_message_bytes: 80 }, 10],
]) {
  test(`a long text is cut to fit ${JSON.stringify(limits)}`, (t) => {
    const { outbox, wrote, text } = make(t, { message_burst: 1000, ...limits });
    const long = "\ud83d\ude00語a".repeat(10);
    outbox.text("a", long, true);
    assert.equal(text(), long);
    assert.deepEqual(
      wrote.map((message) => message.end ?? false).lastIndexOf(false),
      wrote.length - 2,
    );
    assert.ok(wrote.every((message) => message.text.length <= units));
  });
}

test("waiting texts are joined no further than fits a message", (t) => {
  const { outbox, wrote, pass, text } = make(t, { max_text_chars: 5, message_burst: 2 });
  for (const character of "0123456789ab") outbox.text("a", character, false);
  pass(1000);
  assert.equal(text(), "0123456789ab");
  assert.ok(wrote.every((message) => message.text.length <= 5));
});

test("a closed outbox sends nothing more", (t) => {
  const { outbox, wrote, pass } = make(t);
  for (const text of "abcd") outbox.text("a", text, false);
  outbox.close();
  pass(1000);
  outbox.text("a", "e", true);
  outbox.sendNow({ type: "interrupt", turn_id: "a" });
  assert.equal(wrote.length, 2);
});
