/** The messages of `realtime-tts.v1`, in the order of PROTOCOL.md. */

/* Client -> server ------------------------------------------------------------------------- */

export interface Predictor {
  temperature?: number | null;
  top_k?: number | null;
  top_p?: number | null;
}
export interface Sampling extends Predictor {
  repetition_penalty?: number | null;
  predictor?: Predictor | null;
}
/** Settings of the session: what is left out stays, and null resets. */
export interface SessionStart {
  type: "session.start";
  model?: string | null;
  voice?: string | null;
  language?: string | null;
  instructions?: string | null;
  seed?: number | null;
  sampling?: Sampling | null;
  text_filter?: "on" | "off" | null;
  text_normalization?: "auto" | "on" | "off" | null;
  lexicon?: Record<string, string> | null;
  lexicons?: string[] | null;
  layout?: "auto" | "streaming" | "full_text" | null;
  trim_silence?: "on" | "off" | null;
  loudness?: "on" | "off" | null;
  pacing?: "auto" | "token" | "clause" | "sentence" | null;
  word_times?: "on" | "off" | null;
  resume?: "on" | "off" | null;
  speed?: number | null;
  lead_ms?: number | null;
  traceparent?: string | null;
}
export interface Text {
  type: "text";
  text: string;
  turn_id: string;
  end?: boolean;
  traceparent?: string;
}
/** How much of a turn the listener has heard. */
export interface Position {
  played_ms?: number | undefined;
  played_samples?: number | undefined;
}
/** Go on with a turn whose socket was lost; its text follows. */
export interface TurnResume {
  type: "turn.resume";
  turn_id: string;
  samples: number;
  text_chars: number;
  words_chars: number;
  part: string | undefined;
  state: string;
}
export type ClientMessage =
  | SessionStart
  | Text
  | { type: "flush" | "turn.end"; turn_id: string }
  | { type: "turn.codes"; turn_id: string; codes: string[] }
  | TurnResume
  | (Position & { type: "interrupt" | "played"; turn_id: string });

/* Server -> client ------------------------------------------------------------------------- */

/** The server's limits. Characters are Unicode code points. */
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
  digital_source_type?: string;
  marking?: string;
  voices: string[];
  languages: string[];
  settings: Record<string, unknown>;
  sample_rate: number;
  encoding: string;
  packet_bytes: number | null;
  limits: Limits & Record<string, number>;
}
export interface TurnStarted {
  type: "turn.started";
  turn_id: string;
  layout: string;
  /** The format, if it is not 24 kHz `pcm_s16le`, which is all that this client asks for. */
  audio?: Record<string, string | number | null>;
}
/** A word as it was sent, and the positions in the turn's audio between which it is spoken. */
export interface Word {
  text: string;
  start_ms: number;
  end_ms: number;
}
export interface TurnWords {
  type: "turn.words";
  turn_id: string;
  words: Word[];
  /** Whether the model reported the times; otherwise they are estimates. */
  exact?: boolean;
}
/** What another session needs to go on behind the next packet; valid once that has arrived. */
export interface TurnState {
  type: "turn.state";
  turn_id: string;
  samples: number;
  /** An estimate. */
  text_chars: number;
  state: string;
  codes?: string;
  part?: string;
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
  held_inside_word?: number;
  moves?: number;
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
  | Ready
  | TurnStarted
  | TurnWords
  | TurnState
  | TurnInterrupted
  | TurnDone
  | Warning
  | ServerError;
