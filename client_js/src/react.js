import { useCallback, useEffect, useRef, useState } from "react";

import { RealtimeTTS } from "./client.js";
import { Player } from "./player.js";

/** @import * as api from "../types/api.js" */
/** @import * as react from "../types/react.js" */

/** @type {react.SpeechView} */
const IDLE = { state: "idle", error: null, interrupted: null };

/** A player, and a session that is made when it is first needed, and again after it failed. */
class Voice {
  player = new Player();
  /** @type {api.Playback | null} */
  playback = null;
  /** @type {Promise<RealtimeTTS> | null} */
  #session = null;
  #server;
  #options;

  /** @param {string | URL} server @param {react.SpeechOptions} options */
  constructor(server, options) {
    this.#server = server;
    this.#options = options;
  }

  session() {
    if (!this.#session) {
      const session = RealtimeTTS.connect(this.#server, this.#options);
      session.catch(() => (this.#session = null));
      this.#session = session;
    }
    return this.#session;
  }

  async close() {
    await this.player.close();
    (await this.#session?.catch(() => null))?.close();
  }
}

/** @type {typeof react.useSpeech} */
export function useSpeech(server, options = {}) {
  const [view, setView] = useState(IDLE);
  const voice = useRef(/** @type {Voice | null} */ (null));
  const wanted = useRef(options);
  wanted.current = options;
  const key = JSON.stringify([String(server), options]);

  useEffect(() => {
    const made = (voice.current = new Voice(server, wanted.current));
    made.session().catch(() => {}); // speak() shows why
    setView(IDLE);
    return () => {
      voice.current = null;
      void made.close();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `key` has both
  }, [key]);

  const speak = useCallback(async (/** @type {api.TextSource} */ text) => {
    const here = voice.current;
    if (!here) return null;
    const show = (/** @type {react.SpeechView} */ next) => voice.current === here && setView(next);
    const unlocked = here.player.unlock(); // while it is still the click that allows sound
    show({ ...IDLE, state: "waiting" });
    /** @type {api.Playback | null} */
    let playback = null;
    const sounds = (/** @type {any} */ { detail }) => {
      const mine = detail.playback === playback && detail.state === "playing";
      if (mine) show({ ...IDLE, state: "speaking" });
    };
    here.player.addEventListener("state", sounds);
    try {
      const [session] = await Promise.all([here.session(), here.player.bargeIn(), unlocked]);
      const begun = here.player.play(session.speak(text));
      here.playback = playback = begun;
      const result = await begun.done;
      if (here.playback === playback && result.reason !== "interrupted") show(IDLE);
      return result;
    } catch (error) {
      if (here.playback === playback) show({ ...IDLE, error: /** @type {Error} */ (error) });
      return null;
    } finally {
      here.player.removeEventListener("state", sounds);
    }
  }, []);

  const interrupt = useCallback(async () => {
    const here = voice.current;
    const interrupted = (await here?.player.bargeIn()) ?? null;
    if (here && voice.current === here) setView({ ...IDLE, interrupted });
    return interrupted;
  }, []);

  return { ...view, speak, interrupt };
}
