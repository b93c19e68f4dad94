/** Types that the client's own files share. */

import type { ServerError, TurnDone, Warning } from "./messages.js";
import type { PlaybackState } from "./player.js";

export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T | PromiseLike<T>) => void;
  reject: (reason: unknown) => void;
}

/** Waits for the answer to `session.start`; null: none does, as other settings follow at once. */
export type Waiter = Deferred<unknown> | null | undefined;

/** The part of `ConnectOptions` that is needed after the first connection. */
export interface Defaulted {
  connectTimeoutMs: number;
  replyTimeoutMs: number;
  giveUpAfterMs: number;
  onWarning: (notice: Warning | ServerError) => void;
  onConnected: (connected: boolean) => void;
}

/** The content of `turn.done`; for a turn that the server never had, the client makes it. */
export type Done = Omit<TurnDone, "type">;

/** Makes a connection with a session that has these settings. */
export type Opener<Connection> = (settings: object) => Promise<Connection>;

/** A turn, or settings, that wait for a connection. */
export interface Waiting<Connection> {
  attach(connection: Connection): void;
  fail(error: Error): void;
}

export interface ErrorDetails {
  code?: string;
  retryable?: boolean;
  retryAfterMs?: number;
  cause?: unknown;
}

/** An order of the player to the worklet. */
export interface WorkletOrder {
  id: number;
  begin?: true;
  samples?: ArrayBuffer;
  end?: true;
  clear?: true;
}

/** A report of the worklet to the player. */
export interface WorkletReport {
  id: number;
  /** The answer to `clear`: how many samples will have been played, exactly. */
  cleared?: number;
  state: PlaybackState;
  played: number;
  underruns: number;
  buffered: number;
  /** Seconds on the context's clock. */
  time: number;
}
