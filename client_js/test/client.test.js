import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ClientError,
  ConnectionLost,
  HandshakeRefused,
  OverloadedError,
  RealtimeTTS,
  RequestError,
} from "../src/index.js";
import { FakeSocket, READY, connect, done, failed, settle, warning } from "./fake-socket.js";

const connecting = (options = {}) =>
  RealtimeTTS.connect("ws://server", { WebSocket: FakeSocket, ...options });

test("it connects with the subprotocol and is ready with the server's word", async (t) => {
  const { tts, socket } = await connect(t);
  assert.equal(socket.url, "ws://server/v1/tts?resume=on");
  assert.deepEqual(socket.protocols, ["realtime-tts.v1"]);
  assert.equal(socket.binaryType, "arraybuffer");
  assert.deepEqual(tts.ready, READY);
  assert.equal(tts.connected, true);
  assert.deepEqual(socket.sent, []);
});

test("an API key travels as a second subprotocol", async (t) => {
  const { socket } = await connect(t, { apiKey: "abc-123.XYZ" });
  assert.deepEqual(socket.protocols, ["realtime-tts.v1", "realtime-tts.key.abc-123.XYZ"]);
});

test("a function gives the key, later than at once", async (t) => {
  const { socket } = await connect(t, { apiKey: async () => "abc" });
  assert.deepEqual(socket.protocols, ["realtime-tts.v1", "realtime-tts.key.abc"]);
  await assert.rejects(connecting({ apiKey: () => Promise.reject(new Error("none")) }), /none/);
});

test("a function that gives no key is not waited for without end", async () => {
  const late = connecting({ apiKey: () => new Promise(() => {}), connectTimeoutMs: 20 });
  await assert.rejects(late, (error) => {
    return error instanceof HandshakeRefused && /`apiKey` gave no key within 20 ms/.test(error.message);
  });
});

for (const apiKey of ["", "a b", "a/b", "a=", "schlüssel"]) {
  test(`the key ${JSON.stringify(apiKey)} cannot travel and is not repeated`, async () => {
    await assert.rejects(connecting({ apiKey }), (error) => {
      assert.ok(error instanceof ClientError);
      return apiKey === "" || !error.message.includes(apiKey);
    });
  });
}

test("settings are sent under the protocol's names, and the answer is awaited", async (t) => {
  const opening = connecting({
    voice: "ava",
    seed: 7,
    sampling: { temperature: 0, topK: 5, repetitionPenalty: 1.1, predictor: { topP: 0.9 } },
    textFilter: "off",
    leadMs: 1500,
    wordTimes: "on",
    textNormalization: "auto",
    lexicon: { topK: "top K", sampling: "sampling" },
    language: undefined,
  });
  const socket = FakeSocket.last;
  socket.say(READY);
  await settle();
  assert.deepEqual(socket.take(), [
    {
      type: "session.start",
      voice: "ava",
      seed: 7,
      sampling: {
        temperature: 0,
        top_k: 5,
        repetition_penalty: 1.1,
        predictor: { top_p: 0.9 },
      },
      text_filter: "off",
      lead_ms: 1500,
      word_times: "on",
      text_normalization: "auto",
      lexicon: { topK: "top K", sampling: "sampling" },
    },
  ]);
  socket.say({ ...READY, session_id: "second" });
  const tts = await opening;
  t.after(() => tts.close());
  assert.equal(tts.ready.session_id, "second");
});

for (const [options, error, says] of [
  [{ voise: "ava" }, ClientError, "there is no option `voise`"],
  [{ sampling: { top_k: 5 } }, ClientError, "there is no option `top_k`"],
  [{ constructor: 1 }, ClientError, "there is no option `constructor`"],
  [{ WebSocket: null }, ClientError, "no WebSocket here"],
]) {
  test(`${JSON.stringify(options)} is refused before a socket is opened`, async () => {
    FakeSocket.last = undefined;
    await assert.rejects(connecting(options), (caught) => {
      return caught instanceof error && caught.message.includes(says);
    });
    assert.equal(FakeSocket.last, undefined);
  });
}

test(
  "without a WebSocket anywhere it says what to pass",
  { skip: "WebSocket" in globalThis },
  async () => {
    await assert.rejects(RealtimeTTS.connect("ws://server"), /import WebSocket from "ws", pass \{ WebSocket \}/);
  },
);

test("a server that is not there, or says no, is one error with advice", async () => {
  const opening = connecting();
  FakeSocket.last.fail("Unexpected server response: 401");
  await assert.rejects(opening, (error) => {
    assert.ok(error instanceof HandshakeRefused && error.code === "handshake_refused");
    return /401/.test(error.message) && /the key right/.test(error.message);
  });
});

test("an error without a close is a refusal, too", async () => {
  const opening = connecting();
  FakeSocket.last.dispatchEvent(new Event("error")); // Chromium, of an address that a policy forbids
  await assert.rejects(opening, (error) => error instanceof HandshakeRefused && error.retryable);
});

test("a socket that the page's policy refuses is a refusal, too", async () => {
  const WebSocket = class {
    constructor() {
      throw new DOMException("", "NS_ERROR_CONTENT_BLOCKED"); // Firefox
    }
  };
  await assert.rejects(connecting({ WebSocket }), (error) => {
    assert.ok(error instanceof HandshakeRefused && error.code === "handshake_refused");
    return /no session at ws:\/\/\S+: NS_ERROR_CONTENT_BLOCKED/.test(error.message);
  });
});

test("a server without room says when to try again", async () => {
  const opening = connecting();
  const full = { fatal: true, retryable: true, retry_after_ms: 5000 };
  FakeSocket.last.say(failed("too_many_sessions", full));
  FakeSocket.last.drop(1013, "too_many_sessions");
  await assert.rejects(opening, (error) => {
    assert.ok(error instanceof OverloadedError);
    return error.retryAfterMs === 5000 && error.retryable && error.code === "too_many_sessions";
  });
});

test("settings that the server cannot do are refused, and the socket is closed", async () => {
  const opening = connecting({ voice: "carl" });
  const socket = FakeSocket.last;
  socket.say(READY);
  await settle();
  socket.say(failed("bad_settings"));
  await assert.rejects(opening, (error) => {
    return error instanceof RequestError && error.code === "bad_settings" && !error.retryable;
  });
  assert.equal(socket.closedWith, 1000);
});

test("later settings are refused without harm", async (t) => {
  const { tts, socket } = await connect(t);
  const refused = tts.configure({ voice: "carl" });
  await settle();
  socket.say(failed("bad_settings"));
  await assert.rejects(refused, RequestError);
  const taken = tts.configure({ voice: "ben" });
  await settle();
  socket.say({ ...READY, session_id: "later" });
  await taken;
  assert.equal(tts.ready.session_id, "later");
  assert.equal(tts.connected, true);
});

test("each change of settings has an answer of its own", async (t) => {
  const heard = [];
  const { tts, socket } = await connect(t, { onWarning: ({ code }) => heard.push(code) });
  const taken = tts.configure({ voice: "ben" });
  const refused = tts.configure({ speed: 99 });
  socket.say({ ...READY, session_id: "later" });
  await taken;
  let over = false;
  refused.catch(() => (over = true));
  await settle();
  assert.equal(over, false, "the first answer is not the second's");
  socket.say(failed("bad_settings"));
  await assert.rejects(refused, RequestError);
  assert.equal(tts.ready.session_id, "later");
  assert.deepEqual(heard, []);
});

test("null resets a setting, and goes to the server as it is", async (t) => {
  const { tts, socket } = await connect(t);
  socket.take();
  const reset = tts.configure({ voice: null, sampling: { topK: null, predictor: null } });
  socket.say(READY);
  await reset;
  assert.deepEqual(socket.take(), [
    { type: "session.start", voice: null, sampling: { top_k: null, predictor: null } },
  ]);
});

test("a server that says nothing is given up", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const opening = connecting({ connectTimeoutMs: 500 });
  t.mock.timers.tick(250);
  t.mock.timers.tick(249);
  assert.equal(FakeSocket.last.closedWith, null);
  t.mock.timers.tick(1);
  await assert.rejects(opening, (error) => {
    return error instanceof ConnectionLost && /no `ready` within 500 ms/.test(error.message);
  });
  assert.notEqual(FakeSocket.last.closedWith, null);
});

test("a server that speaks something else is given up", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("a");
  socket.say('{"type": "turn.done"}');
  await assert.rejects(turn.done, (error) => {
    return (
      error instanceof ConnectionLost &&
      /no realtime-tts server: turn.done.turn_id: expected string/.test(error.message)
    );
  });
  assert.notEqual(socket.closedWith, null);
});

test("messages of a newer server are skipped", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("a", { end: true });
  socket.say({ type: "words", turn_id: turn.turnId, words: [] }, done(turn.turnId));
  assert.equal((await turn.done).reason, "complete");
});

test("warnings, and errors about nothing in particular, can be heard", async (t) => {
  const heard = [];
  const { socket } = await connect(t, { onWarning: ({ code }) => heard.push(code) });
  socket.say(
    warning("going_away"),
    failed("bad_message"),
    failed("unknown_turn", { turn_id: "x" }),
  );
  assert.deepEqual(heard, ["going_away", "bad_message"]);
});

test("a turn's name has to be one that the server takes", async (t) => {
  const { tts } = await connect(t);
  for (const turnId of ["", "a b", "a\n", "x".repeat(65), "\u00fc"]) {
    assert.throws(() => tts.turn({ turnId }), ClientError);
  }
});

test("turns have names of their own, or the given one", async (t) => {
  const { tts } = await connect(t);
  assert.deepEqual(
    [tts.turn(), tts.turn(), tts.turn({ turnId: "mine" })].map((t) => t.turnId),
    ["turn-1", "turn-2", "mine"],
  );
});

test("after a fatal error the reason is the server's", async (t) => {
  const { tts, socket } = await connect(t);
  const turn = tts.turn();
  turn.send("a");
  socket.say(failed("rate_limited", { fatal: true }));
  socket.drop(1008, "rate_limited");
  await assert.rejects(turn.done, (error) => {
    return error instanceof ConnectionLost && /rate_limited: what happened/.test(error.message);
  });
});

test("options that are undefined are absent", async (t) => {
  const { socket } = await connect(t, { language: undefined });
  assert.deepEqual(socket.sent, []);
});

test("closing ends what still runs, and twice is as good as once", async (t) => {
  const heard = [];
  const { tts, socket } = await connect(t, { onWarning: (notice) => heard.push(notice) });
  const turn = tts.turn();
  turn.send("a");
  tts.close();
  tts.close();
  assert.equal(socket.closedWith, 1000);
  await assert.rejects(turn.done, /closed by this client/);
  socket.say(warning("going_away"));
  assert.deepEqual(heard, [], "and nothing is heard any more");
});
