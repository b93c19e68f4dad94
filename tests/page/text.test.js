// How the page cuts texts: what a typist has finished, what a model would write, what was heard.
import assert from "node:assert/strict";
import { test } from "node:test";

import { fewestTokens, paced, pieces } from "../../realtime_tts/server/page/pieces.js";
import { expectedSeconds, heardWord } from "../../realtime_tts/server/page/spoken.js";
import { TypedText } from "../../realtime_tts/server/page/typed.js";

const TEXT = "The tide is coming in; by 4.30 it will be here.\n\nReally? 潮が満ちてきます。 👍🏽 naïve";

test("pieces joined are the text, and none is long", () => {
  assert.equal(pieces(TEXT).join(""), TEXT);
  assert.ok(pieces(TEXT).every((piece) => piece.trim().length <= 5));
});

test("a word is one token at least, and a sign of a script without spaces is one", () => {
  assert.equal(fewestTokens("The tide, again."), 5);
  assert.equal(fewestTokens("潮が"), 2);
  assert.equal(fewestTokens(""), 0);
});

test("a paced text comes whole and at its pace, with stalls", async () => {
  const text = "a b c d e f g h i j k l m n o p";
  const began = performance.now();
  let joined = "";
  const options = { tokensPerSecond: () => 400, stalls: () => false };
  for await (const piece of paced(text, options)) joined += piece;
  assert.equal(joined, text);
  assert.ok(performance.now() - began >= 30, "sixteen pieces at 400 a second take 40 ms");
});

test("an aborted text stops in the middle of a stall", async () => {
  const stop = new AbortController();
  const seen = [];
  const options = { tokensPerSecond: () => 0.1, stalls: () => false, signal: stop.signal };
  setTimeout(() => stop.abort(), 20);
  for await (const piece of paced("one two", options)) seen.push(piece);
  assert.deepEqual(seen, ["one"]);
});

test("a typed word goes out when it is finished", () => {
  const typed = new TypedText();
  const given = ["T", "Th", "The", "The ", "The t", "The ti", "The tide."].map((v) => typed.take(v).delta);
  assert.deepEqual(given, ["", "", "", "The ", "", "", "tide."]);
  assert.equal(typed.take("The tide. In", { all: true }).delta, " In");
  assert.equal(typed.sent, "The tide. In");
});

test("a word can be corrected until it is finished, and not after", () => {
  const typed = new TypedText();
  assert.equal(typed.take("The tiger").delta, "The ");
  assert.equal(typed.take("The ti").delta, "");
  assert.deepEqual(typed.take("The tide "), { delta: "tide ", changed: false });
  assert.deepEqual(typed.take("The t"), { delta: "", changed: true });
  assert.deepEqual(typed.take("The town "), { delta: "own ", changed: false }, "what is new");
});

test("what nobody heard is given out again", () => {
  const typed = new TypedText();
  typed.take("One. Two. ");
  typed.forget(5);
  assert.equal(typed.take("One. Two. ").delta, "Two. ");
  typed.forget();
  assert.equal(typed.take("One. Two. ").delta, "One. Two. ");
});

test("scripts without spaces go out at once", () => {
  assert.equal(new TypedText().take("潮が").delta, "潮が");
});

test("the heard word moves through the text and never back", () => {
  const total = expectedSeconds(TEXT);
  let before = 0;
  for (let heard = 0; heard <= total + 0.1; heard += 0.05) {
    const { start, end } = heardWord(TEXT, heard);
    assert.ok(start >= before && end >= start, `at ${heard}`);
    before = start;
  }
  assert.equal(before, TEXT.length);
});

test("once the length is known the text fills it", () => {
  assert.deepEqual(heardWord("one two", 0, { total: 10 }), { start: 0, end: 0 });
  assert.deepEqual(heardWord("one two", 10, { total: 10 }), { start: 7, end: 7 });
  assert.deepEqual(heardWord("aaaa bbbb", 1, { total: 10 }), { start: 0, end: 4 });
  assert.deepEqual(heardWord("aaaa bbbb", 9, { total: 10 }), { start: 5, end: 9 });
});
