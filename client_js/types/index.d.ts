/** What `realtime-tts` exports. */

export {
  ClientError,
  ConnectionLost,
  HandshakeRefused,
  OverloadedError,
  ProtocolError,
  RealtimeTTS,
  RealtimeTTSError,
  RequestError,
  Turn,
  TurnError,
} from "./api.js";
export { PACKET_BYTES, SAMPLE_RATE } from "./protocol.js";
export type {
  ConnectOptions,
  Interrupted,
  Played,
  PredictorOptions,
  SamplingOptions,
  SendOptions,
  SessionOptions,
  Socket,
  TextSource,
  TurnOptions,
  TurnResult,
} from "./api.js";
