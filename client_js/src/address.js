import { ClientError } from "./errors.js";

const SCHEMES = new Map([
  ["ws:", "ws:"],
  ["wss:", "wss:"],
  ["http:", "ws:"],
  ["https:", "wss:"],
]);

/**
 * The WebSocket URL of a server: a ws(s) or http(s) URL, or just `host:port`. Without a path
 * `/v1/tts` is meant.
 *
 * @param {string | URL} server
 * @returns {string}
 */
export function websocketUrl(server) {
  const text = String(server).trim();
  const url = parse(text.includes("://") ? text : `ws://${text}`);
  const scheme = url && SCHEMES.get(url.protocol);
  if (!url || !scheme || !url.hostname) {
    throw new ClientError(
      `cannot use ${JSON.stringify(text)} as the server's address; expected a ws://, wss://, ` +
        "http:// or https:// URL or host:port, such as ws://127.0.0.1:8000",
    );
  }
  const path = url.pathname === "/" ? "/v1/tts" : url.pathname;
  return `${scheme}//${url.host}${path}${url.search}`;
}

/** @param {string} text */
function parse(text) {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}
