/** What the client's own files hand to each other. */

import type { PlaybackState } from "./api.js";
import type { ServerError, SessionStart, TurnDone, Warning } from "./messages.js";

export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T | PromiseLike<T>) => void;
  reject: (reason: unknown) => void;
}

/** Who waits for an answer to `session.start`; null: nobody, and other settings follow at once. */
export type Waiter = Deferred<unknown> | null | undefined;

/** The part of `ConnectOptions` that is needed after the first connection. */
export interface Defaulted {
  replyTimeoutMs: number;
  giveUpAfterMs: number;
  onWarning: (notice: Warning | ServerError) => void;
  onConnected: (connected: boolean) => void;
}

/** What `turn.done` says; of a turn that the server never heard of, the client says it. */
export type Done = Omit<TurnDone, "type">;

/** Makes a connection with a session that has these settings. */
export type Opener<Connection> = (settings: SessionStart) => Promise<Connection>;

/** A turn, or settings, until there is a connection. */
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

/** What the player tells the worklet. */
export interface WorkletOrder {
  id: number;
  begin?: true;
  samples?: ArrayBuffer;
  end?: true;
  clear?: true;
}

/** What the worklet reports. */
export interface WorkletReport {
  id: number;
  /** The answer to `clear`: how many samples will have been played, exactly. */
  cleared?: number;
  state: PlaybackState;
  played: number;
  underruns: number;
  buffered: number;
  /** On the context's clock. */
  time: number;
}
