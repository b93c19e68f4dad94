/**
 * The messages of `realtime-tts.v1`, in the order of PROTOCOL.md, and what the client makes of them.
 * Written by hand and apart from the code, so that browsers need not load it.
 */

/* Client -> server ------------------------------------------------------------------------- */

export interface Predictor {
  temperature?: number;
  top_k?: number;
  top_p?: number;
}
export interface Sampling extends Predictor {
  repetition_penalty?: number;
  predictor?: Predictor;
}
export interface SessionStart {
  type: "session.start";
  model?: string;
  voice?: string;
  language?: string;
  instructions?: string;
  seed?: number;
  sampling?: Sampling;
  text_filter?: "on" | "off";
  layout?: "auto" | "streaming" | "full_text";
  lead_ms?: number;
}
export interface Text {
  type: "text";
  text: string;
  turn_id: string;
  end?: boolean;
}
/** How much of a turn the listener has heard. */
export interface Position {
  played_ms?: number;
  played_samples?: number;
}
export type ClientMessage =
  | SessionStart
  | Text
  | { type: "flush" | "turn.end"; turn_id: string }
  | (Position & { type: "interrupt" | "played"; turn_id: string });

/* Server -> client ------------------------------------------------------------------------- */

/** Characters are Unicode code points. */
export interface Limits {
  max_message_bytes: number;
  max_text_chars: number;
  messages_per_second: number;
  message_burst: number;
}
export interface Ready {
  type: "ready";
  session_id: string;
  protocol: string;
  server: string;
  model: string;
  models?: string[];
  voices: string[];
  languages: string[];
  settings: Record<string, unknown>;
  sample_rate: number;
  encoding: string;
  packet_bytes: number;
  limits: Limits & Record<string, number>;
}
export interface TurnStarted {
  type: "turn.started";
  turn_id: string;
  layout: string;
}
export interface TurnInterrupted {
  type: "turn.interrupted";
  turn_id: string;
  samples_sent: number;
  played_ms: number;
  /** An estimate. */
  text_spoken: string;
  text_remaining: string;
}
export interface TurnDone {
  type: "turn.done";
  turn_id: string;
  reason: string;
  samples: number;
  ttfa_ms: number | null;
  underruns: number;
  held_ms: number;
  text_chars: number;
}
export interface Warning {
  type: "warning";
  code: string;
  message: string;
  turn_id?: string;
}
export interface ServerError {
  type: "error";
  code: string;
  message: string;
  fatal: boolean;
  retryable: boolean;
  retry_after_ms?: number;
  turn_id?: string;
}
export type ServerMessage =
  Ready | TurnStarted | TurnInterrupted | TurnDone | Warning | ServerError;

/* What the client gives to its user ---------------------------------------------------------- */

/** How a turn ended, by the server's measure. */
export interface TurnResult {
  turnId: string;
  /** complete, interrupted, idle, max_length, or a guard's. */
  reason: string;
  /** At 24 kHz, sent. */
  samples: number;
  /** From the first text at the server to the first packet. */
  ttfaMs: number | null;
  /** Packets that were sent too late. */
  underruns: number;
  /** How long speech waited for text. */
  heldMs: number;
  textChars: number;
}

/**
 * What was heard of an interrupted turn. `textSpoken + textRemaining` is the text as it was sent;
 * where the cut lies is an estimate.
 */
export interface Interrupted {
  turnId: string;
  samplesSent: number;
  playedMs: number;
  textSpoken: string;
  textRemaining: string;
}

/** How much the listener has heard; samples count if both are given. */
export interface Played {
  playedMs?: number;
  playedSamples?: number;
}

/* What the client is given -------------------------------------------------------------------- */

export type TextSource = string | Iterable<string> | AsyncIterable<string>;

/** temperature 0 is greedy; topK 0 and topP 1 mean no limit. */
export interface PredictorOptions {
  temperature?: number;
  topK?: number;
  topP?: number;
}
export interface SamplingOptions extends PredictorOptions {
  repetitionPenalty?: number;
  predictor?: PredictorOptions;
}
/** Settings of a session; what is left out is the server's choice. See `session.start`. */
export interface SessionOptions {
  /** One of those the server has loaded, if there are several; else the voice picks. */
  model?: string | undefined;
  voice?: string | undefined;
  language?: string | undefined;
  /** How to speak, in words, for models that can. */
  instructions?: string | undefined;
  /** Same seed, text and settings: same audio. */
  seed?: number | undefined;
  sampling?: SamplingOptions | undefined;
  /** Leave out markup, code, emoji, bare URLs (on). */
  textFilter?: "on" | "off" | undefined;
  layout?: "auto" | "streaming" | "full_text" | undefined;
  /** How much audio may be sent ahead of the listener (3000). */
  leadMs?: number | undefined;
}
export interface ConnectOptions {
  apiKey?: string | undefined;
  /** By default the global one, which Node has since version 22; before, that of the package `ws`. */
  WebSocket?: (new (url: string, protocols: string[]) => Socket) | undefined;
  /** Until the server is ready (10,000). */
  connectTimeoutMs?: number | undefined;
  /** Until it answers settings or an interrupt (10,000). */
  replyTimeoutMs?: number | undefined;
  /** How long to try to connect again after a loss (30,000); 0: not at all. */
  giveUpAfterMs?: number | undefined;
  /** Hears every warning, and errors that are about nothing in particular. */
  onWarning?: ((notice: Warning | ServerError) => void) | undefined;
  /** Hears when the connection is lost (false) and when there is one again (true). */
  onConnected?: ((connected: boolean) => void) | undefined;
}

export interface Defaulted {
  replyTimeoutMs: number;
  giveUpAfterMs: number;
  onConnected: (connected: boolean) => void;
}

/** The part of the WebSocket interface that is used; browsers, Node 22 and `ws` have it. */
export interface Socket {
  binaryType: string;
  send(data: string): void;
  close(code?: number): void;
  addEventListener(type: any, listener: (event: any) => void): void;
}

export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T | PromiseLike<T>) => void;
  reject: (reason: unknown) => void;
}

/* The player ------------------------------------------------------------------------------------ */

export type PlaybackState = "waiting" | "playing" | "done";
export interface PlayerOptions {
  /** By default one of 24 kHz of the player's own. */
  context?: AudioContext | undefined;
  /** Where `player-worklet.js` is, if not beside `player.js`. */
  workletUrl?: string | URL | undefined;
}
export interface PlaybackStats {
  /** Given to the audio device. */
  playedSeconds: number;
  /** Of that, what has reached the listener. */
  heardSeconds: number;
  /** Received and not yet played. */
  leadSeconds: number;
  /** Of that, what has reached the audio thread. */
  bufferedSeconds: number;
  underruns: number;
  state: PlaybackState;
}
/** What the worklet reports. */
export interface WorkletReport {
  id: number;
  cleared?: number;
  state: PlaybackState;
  played: number;
  underruns: number;
  buffered: number;
  /** On the context's clock. */
  time: number;
}
