import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const PYTHONS = [
  process.env.REALTIME_TTS_PYTHON,
  fileURLToPath(new URL("../../../.venv/bin/python", import.meta.url)),
].filter(Boolean);

/** Where it is; undefined if it is nowhere. */
export const python = PYTHONS.find(existsSync);

/** Starts a server; `ca` is the file that makes it trusted, with TLS. */
export function start(...flags) {
  const args = ["-m", "realtime_tts", "serve", "--port", "0", ...flags];
  // One thread, as the Python tests have it: numpy's others would wait for work, and compute for it.
  const env = { OMP_NUM_THREADS: "1", ...process.env };
  const server = spawn(python, args, { stdio: ["ignore", "pipe", "pipe"], env });
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
