import { serve as start } from "../../client_js/test/browser/server.js";

export { skip } from "../../client_js/test/browser/server.js";

// A machine that also runs other tests is slow; that shall refuse nobody here.
const PATIENT = ["--utilisation", "1000", "--queue-seconds", "60", "--max-queue", "64"];

/** A server with the demo voice until `t`, a test or `{ after }` of node:test, is over. */
export function serve(t, ...flags) {
  return start(t, ...PATIENT, ...flags);
}

// The kinds of kinds.py that tests for Node ask for, and what makes them.
const KINDS = { open: [], tls: ["--tls-self-signed"] };

/**
 * A server of this kind: that of the run, kept for the clients to come, or, where run.py lends
 * none, one of its own until `t` is over.
 */
export async function lent(t, kind) {
  const lender = process.env.REALTIME_TTS_LENDER;
  if (!lender) return serve(t, ...KINDS[kind]);
  const answer = await fetch(`${lender}/${kind}`);
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  const { url, ca_file: ca } = JSON.parse(text);
  return { url, ca };
}

/** The value of a series of /metrics, such as `tts_turns_total{reason="closed"}`; 0 if none. */
export async function value(url, name) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return line ? Number(line.slice(name.length)) : 0;
}

/** Resolves when the series has this value. */
export async function until(url, name, expected, seconds = 30) {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const found = await value(url, name);
    if (found === expected) return;
    if (performance.now() > deadline) throw new Error(`${name} is ${found}, not ${expected}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
