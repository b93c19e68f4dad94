export { RealtimeTTS } from "./client.js";
export {
  ClientError,
  ConnectionLost,
  HandshakeRefused,
  OverloadedError,
  PACKET_BYTES,
  ProtocolError,
  RealtimeTTSError,
  RequestError,
  SAMPLE_RATE,
  TurnError,
} from "./protocol.js";
export { Turn } from "./turn.js";
