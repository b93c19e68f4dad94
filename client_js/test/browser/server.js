import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

const PYTHONS = [
  process.env.REALTIME_TTS_PYTHON,
  fileURLToPath(new URL("../../../.venv/bin/python", import.meta.url)),
].filter(Boolean);

const python = PYTHONS.find(existsSync);

/** Why there can be no server here; false if there can. */
export const skip =
  !python &&
  `no server: looked for ${PYTHONS.join(", ")}; \`make test\`, or set REALTIME_TTS_PYTHON`;

/** Starts a server; `ca` is the file that makes it trusted, with TLS. */
function start(...flags) {
  const args = ["-m", "realtime_tts", "serve", "--port", "0", ...flags];
  const server = spawn(python, args, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const kill = () => (server.kill("SIGKILL"), ended);
  let said = "";
  const found = new Promise((resolve, reject) => {
    const hear = (chunk) => {
      said += chunk;
      const found = said.match(/ on (https?:\S+)[^]*?(?:--tls-ca (\S+)[^]*)?\/v1\/tts/);
      if (found) resolve(found);
    };
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    ended.then((code) => reject(new Error(`the server ended with ${code}:\n${said}`)));
  });
  return { found, kill };
}

/** A server of its own, until the test is over. */
export async function serve(t, ...flags) {
  const { found, kill } = start(...flags);
  t.after(kill);
  const [, url, ca] = await found;
  return { url, ca, kill };
}

let shared;

/** The URL of a server with the fake engine that the tests of a file share: none of them ends it. */
export async function server() {
  shared ??= start("--engine", "fake");
  const [, url] = await shared.found;
  return url;
}

after(() => shared?.kill());
