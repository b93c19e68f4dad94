import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { RealtimeTTS } from "../src/index.js";

/** The examples and conversations of PROTOCOL.md, which the Python tests read as well. */
export const fixtures = JSON.parse(
  readFileSync(new URL("../../tests/protocol/messages.json", import.meta.url), "utf8"),
);

export const READY = fixtures.server.find((example) => example.section === "ready").message;

/** Lets everything that waits for nothing but promises run. */
export const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A WebSocket whose other end is the test. */
export class FakeSocket extends EventTarget {
  /** @type {FakeSocket} the last one made */
  static last;

  sent = [];
  closedWith = null;

  constructor(url, protocols) {
    super();
    Object.assign(this, { url, protocols });
    FakeSocket.last = this;
  }

  // What the client uses

  send(data) {
    this.sent.push(JSON.parse(data));
  }

  close(code) {
    this.closedWith ??= code ?? 1005;
  }

  // What the test does

  /** The server says something. */
  say(...messages) {
    for (const message of messages) {
      const data = typeof message === "string" ? message : JSON.stringify(message);
      this.dispatchEvent(new MessageEvent("message", { data }));
    }
  }

  /** The server sends a packet, all of whose bytes are `fill`. */
  sayAudio(bytes, fill = 0) {
    const data = new Uint8Array(bytes).fill(fill).buffer;
    this.dispatchEvent(new MessageEvent("message", { data }));
  }

  /** The socket closes. */
  drop(code = 1006, reason = "") {
    this.dispatchEvent(Object.assign(new Event("close"), { code, reason }));
  }

  fail(message) {
    this.dispatchEvent(Object.assign(new Event("error"), { message }));
    this.drop();
  }

  /** What the client sent since the last call. */
  take() {
    return this.sent.splice(0);
  }
}

/** A client and the server's end of its socket, until the test is over. */
export async function connect(t, { ready = READY, ...options } = {}) {
  const opening = RealtimeTTS.connect("ws://server", { WebSocket: FakeSocket, ...options });
  await settle(); // the key may come from a function
  FakeSocket.last.say(ready);
  const tts = await opening;
  t.after(() => tts.close());
  return { tts, socket: FakeSocket.last };
}

/** Lets time pass until another socket is opened; null if none is. */
export async function nextSocket(t, withinMs) {
  const before = FakeSocket.last;
  for (let ms = 0; ms < withinMs; ms += 10) {
    t.mock.timers.tick(10);
    await settle();
    if (FakeSocket.last !== before) return FakeSocket.last;
  }
  return null;
}

/** A client that is connected, with a clock of the test's, with which performance.now goes on. */
export async function timed(t, options = {}) {
  const { tts, socket } = await connect(t, options);
  const began = performance.now();
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 0 });
  t.mock.method(performance, "now", () => began + Date.now());
  return { tts, socket };
}

export async function accept(socket, ready = READY) {
  socket.say(ready);
  await settle();
  assert.equal(socket.sent.shift().type, "session.start");
  socket.say(ready);
  await settle();
}

export async function collect(turn) {
  const packets = [];
  for await (const packet of turn) packets.push(packet);
  return packets;
}

/** The messages about a turn, with what does not matter filled in. */
export const started = (turn_id) => ({ type: "turn.started", turn_id, layout: "streaming" });
export const done = (turn_id, reason = "complete", samples = 0) => ({
  type: "turn.done",
  turn_id,
  reason,
  samples,
  ttfa_ms: samples ? 80 : null,
  underruns: 0,
  held_ms: 0,
  text_chars: 1,
});
export const interrupted = (turn_id, text_spoken = "", text_remaining = "") => ({
  type: "turn.interrupted",
  turn_id,
  samples_sent: 1920,
  played_ms: 80,
  text_spoken,
  text_remaining,
});
export const failed = (code, more = {}) => ({
  type: "error",
  code,
  message: "what happened",
  fatal: false,
  retryable: false,
  ...more,
});
export const warning = (code, turn_id) => ({
  type: "warning",
  code,
  message: "careful",
  ...(turn_id && { turn_id }),
});
