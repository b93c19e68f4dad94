/**
 * The client's public interface, with the documentation of every class, method and option, which
 * editors show. It is written apart from the code, so that browsers need not load it
 * and nothing has to be built; `npm run types` proves that the code does what it says.
 */

import type { Ready, ServerError, Warning, Word } from "./messages.js";

/* Connecting ------------------------------------------------------------------------------- */

/** A session with a server. When it is lost, another one with the same settings replaces it. */
export declare class RealtimeTTS {
  private constructor();

  /**
   * Connect, and set the session up.
   *
   * @param server ws(s) or http(s) URL, or host:port; without a path `/v1/tts`
   * @throws {HandshakeRefused} if there is no session, for a reason a page cannot see, or no key
   * @throws {OverloadedError} if the server says when to try again
   * @throws {RequestError} for settings that the server cannot apply
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
   * Change settings for turns that begin from now on. If the server cannot apply them, all stays as
   * it was. If the connection is lost, the change waits for the next one.
   *
   * @throws {RequestError}
   * @throws {ConnectionLost} if there will be no other connection
   */
  configure(options: SessionOptions): Promise<void>;

  /**
   * Begin a new turn. It is spoken after those before it. If the connection is lost, the turn waits
   * for the next one.
   *
   * @throws {ClientError} for a `turnId` that cannot be used
   * @throws {ConnectionLost} if there will be no other connection
   */
  turn(options?: TurnOptions): Turn;

  /**
   * Speak a text, or text deltas as they arrive. Iterate over the turn for its packets. If `text`
   * throws, so does the turn.
   *
   * @throws {ConnectionLost} if there will be no other connection
   */
  speak(text: TextSource): Turn;

  /** Close the socket; turns still running end with `ConnectionLost`. Idempotent. */
  close(): void;
}

export type TextSource = string | Iterable<string> | AsyncIterable<string>;

/** How codes are drawn: temperature 0 is greedy; topK 0 and topP 1 mean no limit. */
export interface PredictorOptions {
  temperature?: number | null | undefined;
  topK?: number | null | undefined;
  topP?: number | null | undefined;
}
/** Sampling of the first code of a frame, and of the others in `predictor`. */
export interface SamplingOptions extends PredictorOptions {
  repetitionPenalty?: number | null | undefined;
  predictor?: PredictorOptions | null | undefined;
}
/**
 * Settings of a session. The server chooses what is left out, and `null` resets a setting to that.
 * See `session.start`.
 */
export interface SessionOptions {
  /** One of the server's checkpoints, if it has several; otherwise the voice decides. */
  model?: string | null | undefined;
  voice?: string | null | undefined;
  language?: string | null | undefined;
  /** How to speak, in words, for models that can. */
  instructions?: string | null | undefined;
  /** On a CPU, the same seed, text and settings give the same audio. */
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
  /** How much text is spoken as one where it arrives slowly; auto: by its pace (auto). */
  pacing?: "auto" | "token" | "clause" | "sentence" | null | undefined;
  /** 0.7 to 1.4: 1.2 says in five seconds what takes six, at the same pitch (1). */
  speed?: number | null | undefined;
  /** Milliseconds of audio that may be sent ahead of the listener (3000). */
  leadMs?: number | null | undefined;
  /** The W3C `traceparent` of the parent of the turns' spans, where the server traces them. */
  traceparent?: string | null | undefined;
  /** Report when each word is spoken: `Turn.words` (off). */
  wordTimes?: "on" | "off" | null | undefined;
  /**
   * Turns whose socket is lost go on in another session, at the next sample. It takes 6 % more bytes
   * (on, unless `giveUpAfterMs` is 0).
   */
  resume?: "on" | "off" | null | undefined;
}
export interface ConnectOptions {
  /**
   * An API key or a short-lived token, or a function that returns one for each connection that is
   * opened. If it fails after a connection was lost, or gives none in time, it is called again.
   */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /** By default the global one, which Node has since version 22; before, pass that of `ws`. */
  WebSocket?: (new (url: string, protocols: string[]) => Socket) | undefined;
  /** Time to wait for the key of a function, and then until the server is ready (10,000). */
  connectTimeoutMs?: number | undefined;
  /**
   * Time to wait for the answer to settings or an interrupt, and between two signs of life of the
   * server while there is a turn (10,000).
   */
  replyTimeoutMs?: number | undefined;
  /**
   * Time to try to connect again after a connection was lost (30,000), without the time that the
   * machine sleeps. After that, the next turn or `configure` tries again; with 0 only those do, once.
   */
  giveUpAfterMs?: number | undefined;
  /** Called with every warning, and with errors that concern neither a turn nor a request. */
  onWarning?: ((notice: Warning | ServerError) => void) | undefined;
  /** Called when the connection is lost (false) and when there is one again (true). */
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
  turnId?: string | undefined;
}

export interface SendOptions {
  /** Whether this is the last text. */
  end?: boolean | undefined;
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
  /** Whether the turn has ended, so that nothing more comes. */
  readonly over: boolean;
  /** `streaming` or `full_text`, once audio began. */
  readonly layout: string | null;
  /** Samples received, whether or not they were read. */
  readonly samplesReceived: number;
  /** How often the turn went on in another session, because its socket was lost. */
  readonly resumes: number;
  /** The server's warnings about the turn. */
  readonly warnings: readonly Warning[];
  /**
   * With `wordTimes`: the words in the packets so far, each with the white space before it. Joined,
   * those with an `end_ms` up to a position are what a listener at that position has heard.
   */
  readonly words: readonly Word[];
  /** Whether the model reported when it speaks the words; otherwise their times are estimates. */
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

  /** Have the text sent so far spoken to its end; the turn goes on. */
  flush(): void;

  /** Report that no more text comes. A turn without any is over at once. Idempotent. */
  end(): void;

  /**
   * Report how much the listener has heard.
   *
   * @throws {ClientError} without a position
   */
  played(position: Played): void;

  /** Send a text, or text deltas as they arrive, in the background, and end the turn. */
  feed(source: TextSource): this;

  /**
   * Yields packets until the turn is over: 24 kHz, mono, 16 bit little-endian, at most 4,096 bytes.
   * Then throws what ended the turn early: `TurnError`, `OverloadedError` or `ConnectionLost`.
   * Leaving the loop early interrupts the turn.
   */
  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array<ArrayBuffer>, void>;

  /**
   * Stop speaking. From this call on no further packet comes out of the turn. Without a position
   * the server estimates what was heard; without the server the client does. Works on a turn that is
   * done, too, while its listener still hears it. A second call has the first answer.
   */
  interrupt(position?: Played): Promise<Interrupted>;
}

/** How a turn ended, as the server measured it. */
export interface TurnResult {
  turnId: string;
  /** Why it ended: complete, interrupted, idle, max_length, or a guard's reason. */
  reason: string;
  /** Samples sent, at 24 kHz. */
  samples: number;
  /** Time from the first text at the server to the first packet. */
  ttfaMs: number | null;
  /** Packets that were sent too late. */
  underruns: number;
  /** Time that speech waited for text. */
  heldMs: number;
  /** How often the listener may have heard speech wait in the middle of a word. */
  heldInsideWord: number;
  textChars: number;
  /** How often another engine went on with the turn, because its own had failed. */
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

/** How much the listener has heard; if both are given, the samples count. */
export interface Played {
  playedMs?: number | undefined;
  playedSamples?: number | undefined;
}

/* Errors ------------------------------------------------------------------------------------- */

/** Base of all errors that this package throws on purpose. */
export declare class RealtimeTTSError extends Error {
  /** The error's code on the wire, if it has one. */
  readonly code: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** Time to wait before that; 0: the server does not say. */
  readonly retryAfterMs: number;
  /** The text of a lost turn up to where it was heard, by estimate. */
  readonly textSpoken: string;
  /** The rest of a lost turn's text. */
  readonly textRemaining: string;

  constructor(
    message: string,
    details?: { code?: string; retryable?: boolean; retryAfterMs?: number; cause?: unknown },
  );
}

/** The client was used in a way that cannot work. */
export declare class ClientError extends RealtimeTTSError {}

/** The server sent a message that no realtime-tts server sends. */
export declare class ProtocolError extends RealtimeTTSError {}

/** There is no session, for a reason that cannot be seen from here. */
export declare class HandshakeRefused extends RealtimeTTSError {}

/** The server cannot do what was asked. */
export declare class RequestError extends RealtimeTTSError {}

/** The server has no capacity now; `retryAfterMs` says when to try again. */
export declare class OverloadedError extends RealtimeTTSError {}

/** The server ended a turn with an error. */
export declare class TurnError extends RealtimeTTSError {}

/** The socket was lost. */
export declare class ConnectionLost extends RealtimeTTSError {}
