/** A session whose turns go on when its socket is lost. */

import { READY, started, timed } from "./fake-socket.js";

export const RESUMING = { ...READY, settings: { ...READY.settings, resume: "on" } };
export const state = (samples, more = {}) => ({
  type: "turn.state",
  turn_id: "turn-1",
  samples,
  text_chars: 3,
  state: `s${samples}`,
  ...more,
});

/** A client whose turns go on, with a turn that has two packets. */
export async function makeResuming(t, options = {}) {
  const { tts, socket } = await timed(t, { ready: RESUMING, ...options });
  const turn = tts.turn();
  turn.send("Good ");
  turn.flush();
  turn.send("mor");
  socket.say(started("turn-1"), state(1000, { part: "p", codes: "AAAA" }));
  socket.sayAudio(2000, 1);
  socket.say(state(2000, { codes: "BBBB" }));
  socket.sayAudio(2000, 2);
  return { tts, socket, turn };
}
