/** What `realtime-tts/protocol` exports: the wire, for those who write a client of their own. */

import type { ServerMessage } from "./messages.js";

export * from "./messages.js";
export {
  ClientError,
  ConnectionLost,
  HandshakeRefused,
  OverloadedError,
  ProtocolError,
  RealtimeTTSError,
  RequestError,
  TurnError,
} from "./api.js";

export declare const SUBPROTOCOL: string;
/** Precedes an API key in a subprotocol, since a browser cannot set headers. */
export declare const KEY_SUBPROTOCOL_PREFIX: string;
export declare const SAMPLE_RATE: number;
/** Bytes of the largest packet. */
export declare const PACKET_BYTES: number;

/**
 * Parse a text frame of the server; null for a type that only newer servers send.
 *
 * @throws {ProtocolError} for what no such server sends
 */
export declare function parseServerMessage(data: string): ServerMessage | null;
