import assert from "node:assert/strict";
import { test } from "node:test";

import { websocketUrl } from "../src/client.js";
import { ClientError } from "../src/index.js";

for (const [given, url] of [
  ["ws://127.0.0.1:8000", "ws://127.0.0.1:8000/v1/tts"],
  ["http://localhost:8000/", "ws://localhost:8000/v1/tts"],
  ["https://example.com", "wss://example.com/v1/tts"],
  ["wss://example.com/speech?voice=ava", "wss://example.com/speech?voice=ava"],
  ["localhost:8000", "ws://localhost:8000/v1/tts"],
  [" [::1]:8000 ", "ws://[::1]:8000/v1/tts"],
  [new URL("https://example.com/v1/tts#x"), "wss://example.com/v1/tts"],
]) {
  test(`${given} means ${url}`, () => assert.equal(websocketUrl(given), url));
}

for (const given of ["", "ftp://example.com", "http://", "ws://a b", "localhost:99999", "/v1/tts", "//a/v1/tts"]) {
  test(`${JSON.stringify(given)} is no address`, () => {
    assert.throws(() => websocketUrl(given), ClientError);
  });
}
