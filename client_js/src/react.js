import { useCallback, useEffect, useRef, useState } from "react";

import { RealtimeTTS } from "./client.js";
import { Player } from "./player.js";

/** @import * as api from "../types/api.js" */
/** @import * as player from "../types/player.js" */
/** @import * as react from "../types/react.js" */

/** @type {react.SpeechView} */
const IDLE = { state: "idle", error: null, interrupted: null };

/** A player, and a session that is made when it is first needed, and again after it failed. */
class Voice {
  player = new Player();
  /** Counts what it was asked for, so that only the last counts: speech, or silence. */
  asked = 0;
  /** @type {Promise<RealtimeTTS> | null} */
  #session = null;
  #closed = false;
  #server;
  #lost;
  #options;

  /**
   * @param {string | URL} server
   * @param {{ current: react.SpeechOptions }} latest of each render: another function makes no other session
   * @param {{ current: boolean }} lost whether a loss was the last that `onConnected` was told
   */
  constructor(server, latest, lost) {
    this.#server = server;
    this.#lost = lost;
    this.#options = {
      ...latest.current,
      apiKey: () => {
        const { apiKey } = latest.current;
        return /** @type {string} */ (typeof apiKey === "function" ? apiKey() : apiKey);
      },
      onWarning: (/** @type {any} */ notice) => this.#closed || latest.current.onWarning?.(notice),
      // That this one is closed says nothing of the one that replaces it.
      onConnected: (/** @type {boolean} */ is) => {
        if (this.#closed) return;
        lost.current = !is;
        latest.current.onConnected?.(is);
      },
    };
  }

  session() {
    if (!this.#session) {
      const session = RealtimeTTS.connect(this.#server, this.#options);
      session.then(
        () => this.#lost.current && this.#options.onConnected(true),
        () => (this.#session = null),
      );
      this.#session = session;
    }
    return this.#session;
  }

  async turn() {
    const session = await this.session();
    try {
      return session.turn();
    } catch (error) {
      if (this.#closed) throw error;
      this.#session = null; // no other connection replaces it: the key was rotated, say
      return (await this.session()).turn();
    }
  }

  async close() {
    this.#closed = true;
    this.asked++;
    await this.player.close();
    (await this.#session?.catch(() => null))?.close();
  }
}

/** @type {typeof react.useSpeech} */
export function useSpeech(server, options = {}) {
  const [view, setView] = useState(IDLE);
  const voice = useRef(/** @type {Voice | null} */ (null));
  const latest = useRef(options);
  latest.current = options;
  const lost = useRef(false);
  const key = JSON.stringify([String(server), options]);

  useEffect(() => {
    const made = (voice.current = new Voice(server, latest, lost));
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
    const mine = ++here.asked;
    const show = (/** @type {react.SpeechView} */ next) => here.asked === mine && setView(next);
    const unlocked = here.player.unlock(); // while it is still the click that allows sound
    show({ ...IDLE, state: "waiting" });
    /** @type {player.Playback | null} */
    let playback = null;
    const sounds = (/** @type {any} */ { detail }) => {
      const begins = detail.playback === playback && detail.state === "playing";
      if (begins) show({ ...IDLE, state: "speaking" });
    };
    here.player.addEventListener("state", sounds);
    try {
      const [turn] = await Promise.all([here.turn(), here.player.bargeIn(), unlocked]);
      if (here.asked !== mine) void turn.interrupt(); // meanwhile: it must not be heard
      playback = here.player.play(turn.feed(text));
      const result = await playback.done;
      show(IDLE);
      return result;
    } catch (error) {
      show({ ...IDLE, error: /** @type {Error} */ (error) });
      return null;
    } finally {
      here.player.removeEventListener("state", sounds);
    }
  }, []);

  const interrupt = useCallback(async () => {
    const here = voice.current;
    if (!here) return null;
    const mine = ++here.asked;
    const interrupted = await here.player.bargeIn();
    if (here.asked === mine) setView({ ...IDLE, interrupted });
    return interrupted;
  }, []);

  return { ...view, speak, interrupt };
}
