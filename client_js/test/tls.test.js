import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { serve, skip } from "./browser/server.js";

const PROGRAM = `
  import WebSocket from "ws";
  import { RealtimeTTS } from "./src/index.js";

  const tts = await RealtimeTTS.connect(process.argv[1], { WebSocket });
  let samples = 0;
  for await (const packet of tts.speak("Hello there.")) samples += packet.length;
  tts.close();
  console.log(samples);
`;

/** Node reads what to trust when it starts, so each try is a process of its own. */
async function speak(url, environment) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM, url], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: { ...process.env, ...environment },
  });
  let out = "";
  let errors = "";
  child.stdout.on("data", (chunk) => (out += chunk));
  child.stderr.on("data", (chunk) => (errors += chunk));
  const [code] = await once(child, "close");
  return { code, out, errors };
}

test("wss works with the server's certificate, and not without", { skip }, async (t) => {
  const { url, ca } = await serve(t, "--engine", "fake", "--tls-self-signed");
  const address = url.replace("https:", "wss:");
  const trusting = await speak(address, { NODE_EXTRA_CA_CERTS: ca });
  assert.equal(trusting.code, 0, trusting.errors);
  assert.ok(Number(trusting.out) > 10_000);
  const other = await speak(address, { NODE_EXTRA_CA_CERTS: undefined });
  assert.notEqual(other.code, 0);
});
