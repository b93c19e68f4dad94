import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
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

/** A server of its own, until the test is over; `ca` is the file that makes it trusted, with TLS. */
export async function serve(t, ...flags) {
  const args = ["-m", "realtime_tts", "serve", "--port", "0", ...flags];
  const server = spawn(python, args, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const kill = () => (server.kill("SIGKILL"), ended);
  t.after(kill);
  let said = "";
  const [, url, ca] = await new Promise((resolve, reject) => {
    const hear = (chunk) => {
      said += chunk;
      const found = said.match(/ on (https?:\S+)[^]*?(?:--tls-ca (\S+)[^]*)?\/v1\/tts/);
      if (found) resolve(found);
    };
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    ended.then((code) => reject(new Error(`the server ended with ${code}:\n${said}`)));
  });
  return { url, ca, kill };
}
