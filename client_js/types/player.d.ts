/** What `realtime-tts/player` exports. It needs the types of a browser (`"lib": ["DOM"]`). */

import type { Interrupted, Turn, TurnResult } from "./api.js";

/** Plays turns in a browser, one after another. It is an `EventTarget` of `PlayerEvents`. */
export declare class Player extends EventTarget {
  constructor(options?: PlayerOptions);

  /** Made at the first use, at 24 kHz, unless one was passed. */
  get context(): AudioContext;

  /** All sound passes it on its way to the loudspeaker: for a waveform, a volume, a recording. */
  get analyser(): AnalyserNode;

  /** Allow sound. Browsers require a gesture: call it in one. The page's first one does, too. */
  unlock(): Promise<void>;

  /** Play a turn, after those before it. */
  play(turn: Turn): Playback;

  /**
   * Fall silent because the listener speaks, and drop everything not yet played. Resolves with what
   * was heard of the turn that played; null if there was none.
   */
  bargeIn(): Promise<Interrupted | null>;

  /** Stop, and close the audio context, also one that was passed: that closes players that share it. */
  close(): Promise<void>;

  addEventListener<Name extends keyof PlayerEvents>(
    type: Name,
    listener: (event: PlayerEvents[Name]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(...others: Parameters<EventTarget["addEventListener"]>): void;
  removeEventListener<Name extends keyof PlayerEvents>(
    type: Name,
    listener: (event: PlayerEvents[Name]) => void,
    options?: boolean | EventListenerOptions,
  ): void;
  removeEventListener(...others: Parameters<EventTarget["removeEventListener"]>): void;
}

export interface PlayerEvents {
  packet: CustomEvent<{ playback: Playback; samples: number }>;
  state: CustomEvent<{ playback: Playback; state: PlaybackState }>;
  underrun: CustomEvent<{ playback: Playback; underruns: number }>;
}

/** One turn in the player. Made by `Player.play()`. */
export interface Playback {
  readonly turn: Turn;

  /** Resolves when all was played or cleared; rejects with what ended the turn early. */
  get done(): Promise<TurnResult>;

  /** Return how far playback is at this moment. */
  stats(): PlaybackStats;
}

/** Waiting for sound, playing, or done. */
export type PlaybackState = "waiting" | "playing" | "done";
export interface PlayerOptions {
  /** The audio context to use; by default the player makes one of 24 kHz. */
  context?: AudioContext | undefined;
  /** The URL of `player-worklet.js`, for pages whose policy allows no worklet from a `blob:`. */
  workletUrl?: string | URL | undefined;
}
export interface PlaybackStats {
  /** Seconds given to the audio device. */
  playedSeconds: number;
  /** Seconds of that which have reached the listener. */
  heardSeconds: number;
  /** Seconds received and not yet played. */
  leadSeconds: number;
  /** Seconds of that which have reached the audio thread. */
  bufferedSeconds: number;
  underruns: number;
  state: PlaybackState;
}
