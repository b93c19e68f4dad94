/**
 * What the client gives to its user and is given: the documentation of every class, method and
 * option, which editors show. It is written apart from the code, so that browsers need not load it
 * and nothing has to be built; `npm run types` proves that the code does what it says.
 */

import type { Ready, ServerError, Warning, Word } from "./messages.js";

/* Connecting ------------------------------------------------------------------------------- */

/** A session with a server; after a loss, the next one with the same settings. */
export declare class RealtimeTTS {
  private constructor();

  /**
   * Connect, and set the session up.
   *
   * @param server ws(s) or http(s) URL, or host:port; without a path `/v1/tts`
   * @throws {HandshakeRefused} if there is no session, for a reason a page cannot see
   * @throws {OverloadedError} if the server says when to try again
   * @throws {RequestError} for settings that the server cannot do
   * @throws {ClientError} for an address, key or option that cannot be used
   */
  static connect(
    server: string | URL,
    options?: SessionOptions & ConnectOptions,
  ): Promise<RealtimeTTS>;

  /** The server's latest `ready`: voices, languages, effective settings, limits. */
  get ready(): Ready;

  /** Whether the socket is open, as far as is known. */
  get connected(): boolean;

  /**
   * Change settings for turns that begin from now on. If the server cannot, all stays as it was. If
   * the connection is lost, it waits for the next one.
   *
   * @throws {RequestError}
   * @throws {ConnectionLost} if there will be no other connection
   */
  configure(options: SessionOptions): Promise<void>;

  /**
   * A new turn. It is spoken after those before it. If the connection is lost, it waits for the
   * next one.
   *
   * @throws {ClientError} for a `turnId` that cannot be used
   * @throws {ConnectionLost} if there will be no other connection
   */
  turn(options?: TurnOptions): Turn;

  /**
   * Speak a text, or text deltas as they come. Iterate over the turn for its packets. If `text`
   * throws, so does the turn.
   *
   * @throws {ConnectionLost} if there will be no other connection
   */
  speak(text: TextSource): Turn;

  /** Close the socket; turns still running end with `ConnectionLost`. Idempotent. */
  close(): void;
}

export type TextSource = string | Iterable<string> | AsyncIterable<string>;

/** temperature 0 is greedy; topK 0 and topP 1 mean no limit. */
export interface PredictorOptions {
  temperature?: number | null | undefined;
  topK?: number | null | undefined;
  topP?: number | null | undefined;
}
export interface SamplingOptions extends PredictorOptions {
  repetitionPenalty?: number | null | undefined;
  predictor?: PredictorOptions | null | undefined;
}
/**
 * Settings of a session; what is left out is the server's choice, and `null` makes it so again. See
 * `session.start`.
 */
export interface SessionOptions {
  /** One of those the server has loaded, if there are several; else the voice picks. */
  model?: string | null | undefined;
  voice?: string | null | undefined;
  language?: string | null | undefined;
  /** How to speak, in words, for models that can. */
  instructions?: string | null | undefined;
  /** Same seed, text and settings: same audio. */
  seed?: number | null | undefined;
  sampling?: SamplingOptions | null | undefined;
  /** Leave out markup, code, emoji, bare URLs (on). */
  textFilter?: "on" | "off" | null | undefined;
  /** Say numbers, dates and abbreviations as words; auto: if the model reads them badly (auto). */
  textNormalization?: "auto" | "on" | "off" | null | undefined;
  /** Words, and what to say for them: `{ SQL: "sequel" }`. Replaced as a whole. */
  lexicon?: Record<string, string> | null | undefined;
  /** Lexicons stored on the server, behind `lexicon`: each a name, or `name@version`. */
  lexicons?: string[] | null | undefined;
  layout?: "auto" | "streaming" | "full_text" | null | undefined;
  /** Leave out the silence that the model begins with (on). */
  trimSilence?: "on" | "off" | null | undefined;
  /** Bring every voice and turn to -16 LUFS (off). */
  loudness?: "on" | "off" | null | undefined;
  /** How much text is spoken as one where it comes slowly; auto: as its pace wants it (auto). */
  pacing?: "auto" | "token" | "clause" | "sentence" | null | undefined;
  /** 0.7 to 1.4: 1.2 says in five seconds what takes six, at the same pitch (1). */
  speed?: number | null | undefined;
  /** How much audio may be sent ahead of the listener (3000). */
  leadMs?: number | null | undefined;
  /** The W3C `traceparent` of the span that turns are children of, where the server traces them. */
  traceparent?: string | null | undefined;
  /** Say when which word is spoken: `Turn.words` (off). */
  wordTimes?: "on" | "off" | null | undefined;
  /**
   * Turns whose socket is lost go on in another session, at the next sample. It takes 6 % more bytes
   * (on, unless `giveUpAfterMs` is 0).
   */
  resume?: "on" | "off" | null | undefined;
}
export interface ConnectOptions {
  /**
   * Or a short-lived token; a function gives one for each connection that is opened. If it fails
   * after a loss, it is called again.
   */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /** By default the global one, which Node has since version 22; before, that of the package `ws`. */
  WebSocket?: (new (url: string, protocols: string[]) => Socket) | undefined;
  /** Until the server is ready (10,000). */
  connectTimeoutMs?: number | undefined;
  /** Until it answers settings or an interrupt (10,000). */
  replyTimeoutMs?: number | undefined;
  /**
   * How long to try to connect again after a loss (30,000). After that, the next turn or `configure`
   * tries again; with 0 only those do, once.
   */
  giveUpAfterMs?: number | undefined;
  /** Hears every warning, and errors that are about nothing in particular. */
  onWarning?: ((notice: Warning | ServerError) => void) | undefined;
  /** Hears when the connection is lost (false) and when there is one again (true). */
  onConnected?: ((connected: boolean) => void) | undefined;
}

/** The part of the WebSocket interface that is used; browsers, Node 22 and `ws` have it. */
export interface Socket {
  binaryType: string;
  send(data: string): void;
  close(code?: number): void;
  addEventListener(type: any, listener: (event: any) => void): void;
}

/* Turns -------------------------------------------------------------------------------------- */

export interface TurnOptions {
  /** 1 to 64 printable ASCII characters, new to this session. */
  turnId?: string;
}

export interface SendOptions {
  /** No more text after this one. */
  end?: boolean;
}

/**
 * One stream of text in and of packets out. Made by `RealtimeTTS.turn()`; it reaches the server
 * with its first text.
 */
export declare class Turn {
  private constructor();

  /** The turn's name on the wire and in the server's log. */
  readonly turnId: string;
  /** All text sent so far. */
  readonly text: string;
  /** Nothing more will come. */
  readonly over: boolean;
  /** `streaming` or `full_text`, once audio began. */
  readonly layout: string | null;
  /** Samples that came, whether or not they were read. */
  readonly samplesReceived: number;
  /** How often its socket was lost and it went on in another session. */
  readonly resumes: number;
  /** What the server warned about. */
  readonly warnings: readonly Warning[];
  /**
   * With `wordTimes`: the words in the packets so far, each with the white space before it. Those
   * with an `end_ms` up to a position, joined, are what a listener has heard who is there.
   */
  readonly words: readonly Word[];
  /** Whether the model told when it speaks the words that came; else their times are estimated. */
  readonly wordsExact: boolean;

  /** How the turn ended. Rejects with what iterating would throw. */
  get done(): Promise<TurnResult>;

  /**
   * Send a text delta as it came from the language model: no trimming, no joining. `end` ends the
   * text with it. Does nothing once the turn is over: a sender cannot know that in time.
   *
   * @throws {ClientError} after `end()`
   */
  send(delta: string, options?: SendOptions): void;

  /** Speak what was sent so far to its end, and stay in the turn. */
  flush(): void;

  /** No more text. A turn without any is over at once. Idempotent. */
  end(): void;

  /**
   * Report how much the listener has heard.
   *
   * @throws {ClientError} without a position
   */
  played(position: Played): void;

  /** Send a text, or text deltas as they come, in the background, and end the turn. */
  feed(source: TextSource): this;

  /**
   * The packets until the turn is over: 24 kHz, mono, 16 bit little-endian, at most 4,096 bytes.
   * Then throws what ended the turn early: `TurnError`, `OverloadedError` or `ConnectionLost`.
   * Leaving the loop early interrupts the turn.
   */
  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array<ArrayBuffer>, void>;

  /**
   * Stop speaking. From this call on not one more packet comes out of the turn. Without a position
   * the server estimates what was heard; without the server the client does. Works on a turn that is
   * done, too, while its listener still hears it. Called again it gives the first answer.
   */
  interrupt(position?: Played): Promise<Interrupted>;
}

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
  /** How often the listener may have heard it wait in the middle of a word. */
  heldInsideWord: number;
  textChars: number;
  /** How often another engine went on with it, because its own had failed. */
  moves: number;
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

/* Errors ------------------------------------------------------------------------------------- */

/** What this package throws on purpose. */
export declare class RealtimeTTSError extends Error {
  /** The word on the wire, where there is one. */
  readonly code: string;
  /** Whether the same again may work. */
  readonly retryable: boolean;
  /** How long to wait before that; 0: the server does not say. */
  readonly retryAfterMs: number;
  /** Of a lost turn: its text up to where it was heard, by estimate. */
  readonly textSpoken: string;
  /** Of a lost turn: the rest of its text. */
  readonly textRemaining: string;

  constructor(
    message: string,
    details?: { code?: string; retryable?: boolean; retryAfterMs?: number; cause?: unknown },
  );
}

/** Used in a way that cannot work. */
export declare class ClientError extends RealtimeTTSError {}

/** A message that no such server sends. */
export declare class ProtocolError extends RealtimeTTSError {}

/** No session, and the reason cannot be seen from here. */
export declare class HandshakeRefused extends RealtimeTTSError {}

/** The server cannot do what was asked. */
export declare class RequestError extends RealtimeTTSError {}

/** No capacity now; says when to try again. */
export declare class OverloadedError extends RealtimeTTSError {}

/** The server ended a turn with an error. */
export declare class TurnError extends RealtimeTTSError {}

/** The socket went away. */
export declare class ConnectionLost extends RealtimeTTSError {}

/* The player --------------------------------------------------------------------------------- */

/**
 * Plays turns in a browser, one after the other. Events: `state`, `underrun` and `packet`, whose
 * `detail` has the `playback`.
 */
export declare class Player extends EventTarget {
  constructor(options?: PlayerOptions);

  /** Made at the first use. Runs at 24 kHz, or at the device's rate where a browser refuses. */
  get context(): AudioContext;

  /** What is playing, for a waveform. */
  get analyser(): AnalyserNode;

  /** Browsers allow sound after a gesture: call it in one. The first on the page is used, too. */
  unlock(): Promise<void>;

  /** Play a turn, after those before it. */
  play(turn: Turn): Playback;

  /**
   * The listener speaks: silence, and everything that was to be played is dropped. Reports what was
   * heard of the turn that played; null if there was none.
   */
  bargeIn(): Promise<Interrupted | null>;

  /** Stop, and give the audio device back. */
  close(): Promise<void>;
}

/** One turn in the player. Made by `Player.play()`. */
export interface Playback {
  readonly turn: Turn;

  /** When all was played or cleared; rejects with what ended the turn early. */
  get done(): Promise<TurnResult>;

  /** How far it is, at this moment. */
  stats(): PlaybackStats;
}

/** waiting for sound, playing, or done. */
export type PlaybackState = "waiting" | "playing" | "done";
export interface PlayerOptions {
  /** By default one of 24 kHz of the player's own. */
  context?: AudioContext | undefined;
  /** Where `player-worklet.js` is, for pages whose policy allows no worklet from a `blob:`. */
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
