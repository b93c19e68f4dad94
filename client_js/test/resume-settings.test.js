import assert from "node:assert/strict";
import { test } from "node:test";

import { accept, failed, nextSocket, settle, started, timed } from "./fake-socket.js";
import { RESUMING, makeResuming, state } from "./resuming.js";

const voiced = (voice) => ({ ...RESUMING, settings: { ...RESUMING.settings, voice } });

test("a turn goes on with the settings that it began with, and later ones keep theirs", async (t) => {
  const { socket } = await makeResuming(t);
  socket.say(voiced("bass"));
  socket.drop();
  const next = await nextSocket(t, 300);
  await accept(next, voiced("bass"));
  const said = next.take();
  assert.deepEqual(said[0], { ...RESUMING.settings, type: "session.start" });
  assert.deepEqual(said.at(-1), { ...voiced("bass").settings, type: "session.start" });
  const types = said.map(({ type }) => type);
  assert.ok(types.indexOf("turn.resume") > 0 && types.indexOf("text") < types.length - 1);
});

const CHANGES = {
  "was on its way": [voiced("ben"), "ben"],
  "was refused": [failed("unknown_voice"), RESUMING.settings.voice],
};

for (const [how, [answer, voice]] of Object.entries(CHANGES)) {
  test(`a turn whose text followed a change that ${how} goes on as it began`, async (t) => {
    const { tts, socket } = await timed(t, { ready: RESUMING });
    const change = tts.configure({ voice: "ben" }).catch(() => {});
    tts.turn().send("Good ");
    const later = tts.configure({ voice: "bass" });
    socket.say(answer, started("turn-1"), state(1000));
    socket.sayAudio(2000);
    socket.say(voiced("bass"));
    await Promise.all([change, later]);
    socket.drop();
    const next = await nextSocket(t, 300);
    await accept(next, voiced("bass"));
    assert.equal(next.take()[0].voice, voice);
  });
}

test("settings are neither changed nor answered by a turn that goes on with its own", async (t) => {
  const heard = [];
  let changed;
  const onConnected = (connected) => connected && (changed = tts.configure({ voice: "ben" }));
  const onWarning = ({ code }) => heard.push(code);
  const { tts, socket } = await makeResuming(t, { onConnected, onWarning });
  socket.say(voiced("bass"));
  socket.drop();
  const next = await nextSocket(t, 300);
  await accept(next, voiced("bass"));
  const starts = next.take().filter(({ type }) => type === "session.start");
  assert.deepEqual(
    starts.map(({ voice }) => voice),
    [RESUMING.settings.voice, "bass", "ben"],
  );
  let over = false;
  changed.then(() => (over = true));
  next.say(voiced(RESUMING.settings.voice));
  assert.equal(tts.ready.settings.voice, "bass", "those of the turn are its own");
  next.say(voiced("bass"));
  await settle();
  assert.equal(over, false, "both answers were the turn's");
  next.say(voiced("ben"));
  await changed;
  assert.equal(tts.ready.settings.voice, "ben");
  assert.deepEqual(heard, []);
});

test("that a turn cannot go on with its settings is heard", async (t) => {
  const heard = [];
  const { socket, tts } = await makeResuming(t, { onWarning: ({ code }) => heard.push(code) });
  socket.say(voiced("bass"));
  socket.drop();
  const next = await nextSocket(t, 300);
  await accept(next, voiced("bass"));
  next.say(failed("bad_settings"), voiced("bass"));
  assert.deepEqual(heard, ["bad_settings"]);
  assert.equal(tts.ready.settings.voice, "bass");
});
