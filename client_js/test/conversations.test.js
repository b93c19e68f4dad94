import assert from "node:assert/strict";
import { test } from "node:test";

import { connect, fixtures } from "./fake-socket.js";

const PLAYABLE = ["Deltas from a language model", "Barge-in", "Captions", "Barge-in at the end"];

for (const { title, steps } of fixtures.conversations.filter(({ title }) =>
  PLAYABLE.includes(title),
)) {
  test(`the client plays its side of “${title}” as PROTOCOL.md shows it`, async (t) => {
    const { tts, socket } = await connect(t);
    const turns = new Map();
    const reports = [];
    for (const step of steps) {
      if (step.client) {
        const message = JSON.parse(step.client);
        const name = message.turn_id;
        if (!turns.has(name)) turns.set(name, tts.turn({ turnId: name }));
        const turn = turns.get(name);
        const { played_ms: playedMs, played_samples: playedSamples } = message;
        if (message.type === "text") turn.send(message.text, { end: message.end });
        if (message.type === "turn.end") turn.end();
        if (message.type === "interrupt") reports.push(turn.interrupt({ playedMs, playedSamples }));
        assert.deepEqual(socket.take(), [message]);
      } else if (step.server) socket.say(step.server);
      else for (let i = 0; i < step.packets; i++) socket.sayAudio(step.audio_bytes);
    }
    const said = (type) => steps.map((step) => step.server).filter((m) => m?.type === type);
    for (const message of said("turn.done")) {
      const { reason, samples, ttfaMs } = await turns.get(message.turn_id).done;
      assert.deepEqual(
        [reason, samples, ttfaMs],
        [message.reason, message.samples, message.ttfa_ms],
      );
      assert.equal(turns.get(message.turn_id).samplesReceived, message.samples);
      const words = said("turn.words").flatMap((each) => each.words);
      assert.deepEqual(turns.get(message.turn_id).words, words);
    }
    const heard = (await Promise.all(reports)).map((report) => report.textSpoken);
    assert.deepEqual(
      heard,
      said("turn.interrupted").map((message) => message.text_spoken),
    );
  });
}
