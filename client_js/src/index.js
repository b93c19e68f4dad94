export { RealtimeTTS } from "./client.js";
export {
  ClientError,
  ConnectionLost,
  HandshakeRefused,
  OverloadedError,
  ProtocolError,
  RealtimeTTSError,
  RequestError,
  TurnError,
} from "./errors.js";
export { PACKET_BYTES, SAMPLE_RATE } from "./protocol.js";
export { Turn } from "./turn.js";
