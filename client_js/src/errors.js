/**
 * Every error this package throws on purpose.
 *
 *     RealtimeTTSError
 *     ├── ClientError        used in a way that cannot work
 *     ├── ProtocolError      a message that is none of the protocol's
 *     ├── HandshakeRefused   there was no session, and the reason cannot be seen from here
 *     ├── RequestError       the server cannot do what was asked
 *     ├── OverloadedError    no capacity now; says when to try again
 *     ├── TurnError          the server ended a turn with an error
 *     └── ConnectionLost     the socket went away
 *
 * `code` is the word that goes over the wire, where there is one.
 */

export class RealtimeTTSError extends Error {
  /**
   * @param {string} message
   * @param {{code?: string, retryable?: boolean, cause?: unknown}} [details]
   */
  constructor(message, { code = "error", retryable = false, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    /** Whether the same again may work. */
    this.retryable = retryable;
  }
}

export class ClientError extends RealtimeTTSError {
  /** @param {string} message */
  constructor(message) {
    super(message, { code: "client_error" });
  }
}

export class ProtocolError extends RealtimeTTSError {
  /**
   * @param {string} message
   * @param {string} code
   * @param {string} [field] path of the field at fault
   */
  constructor(message, code, field = "") {
    super(message, { code });
    this.field = field;
  }
}

export class HandshakeRefused extends RealtimeTTSError {
  /** @param {string} message @param {unknown} [cause] */
  constructor(message, cause) {
    super(message, { code: "handshake_refused", cause });
  }
}

export class RequestError extends RealtimeTTSError {}

export class OverloadedError extends RealtimeTTSError {
  /** @param {string} message @param {string} code @param {number} retryAfterMs */
  constructor(message, code, retryAfterMs) {
    super(message, { code, retryable: true });
    this.retryAfterMs = retryAfterMs;
  }
}

export class TurnError extends RealtimeTTSError {}

export class ConnectionLost extends RealtimeTTSError {
  /** @param {string} message */
  constructor(message) {
    super(message, { code: "connection_lost", retryable: true });
  }
}
