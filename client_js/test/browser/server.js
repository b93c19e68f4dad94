import { after } from "node:test";

import { PYTHONS, python, start } from "./start.js";

/** Why there can be no server here; false if there can. */
export const skip =
  !python &&
  `no server: looked for ${PYTHONS.join(", ")}; \`make test\`, or set REALTIME_TTS_PYTHON`;

/** A server of its own, until the test is over. */
export async function serve(t, ...flags) {
  const { found, kill } = start(...flags);
  t.after(kill);
  const [, url, ca] = await found;
  return { url, ca, kill };
}

let shared;

/**
 * The URL of a server with the fake engine that the tests of a file share, or of all files if
 * together.js has started one: none of them ends it.
 */
export async function server() {
  if (process.env.REALTIME_TTS_TEST_SERVER) return process.env.REALTIME_TTS_TEST_SERVER;
  shared ??= start("--engine", "fake");
  const [, url] = await shared.found;
  return url;
}

after(() => shared?.kill());
