/** What `realtime-tts/react` exports. React 18 or later is an optional peer dependency. */

import type { ConnectOptions, Interrupted, SessionOptions, TextSource, TurnResult } from "./api.js";

/**
 * The options of `RealtimeTTS.connect`. Another value makes another session; of functions, those of the
 * latest render are called.
 */
export type SpeechOptions = SessionOptions & ConnectOptions;

/** The state of speech, to be shown. */
export interface SpeechView {
  /** `waiting` for the first sound, `speaking`, or neither. */
  state: "idle" | "waiting" | "speaking";
  /** Why the last speech ended early, in words: `error.message`. */
  error: Error | null;
  /** What was heard of the last speech, if it was interrupted. */
  interrupted: Interrupted | null;
}

/** What `useSpeech` returns. `speak` and `interrupt` stay the same from one render to the next. */
export interface Speech extends SpeechView {
  /**
   * Speak a text, or text deltas as they arrive; call it in a click or key press, where browsers
   * let sound begin. Speech that has not ended is interrupted. Resolves with how the turn ended
   * once all of it was heard; null if it could not be spoken, and then `error` says why.
   */
  speak(text: TextSource): Promise<TurnResult | null>;
  /** Fall silent at once. Resolves with what was heard; null if nothing was being said. */
  interrupt(): Promise<Interrupted | null>;
}

/**
 * A voice for a component: connected while it is mounted, silent and closed when it is gone.
 *
 * @param server as for `RealtimeTTS.connect`
 */
export declare function useSpeech(server: string | URL, options?: SpeechOptions): Speech;
