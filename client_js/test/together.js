// Runs test files with one browser and one server for all of them, where there are both:
//
//     node test/together.js test/*.test.js test/browser/*.test.js
import { spawn } from "node:child_process";
import { once } from "node:events";

import { FLAGS, chromium } from "./browser/chromium.js";
import { python, start } from "./browser/start.js";

/** What the files find in their environment, and how it is ended. */
async function shared() {
  if (!chromium || !python) return { variables: {}, end() {} };
  const { chromium: launcher } = await import("playwright-core");
  const server = start("--engine", "fake");
  const [browser, [, url]] = await Promise.all([
    launcher.launchServer({ executablePath: chromium, args: FLAGS }),
    server.found,
  ]);
  const variables = {
    REALTIME_TTS_TEST_BROWSER: browser.wsEndpoint(),
    REALTIME_TTS_TEST_SERVER: url,
  };
  return { variables, end: () => Promise.all([browser.close(), server.kill()]) };
}

const { variables, end } = await shared();
try {
  const words = ["--test", "--test-concurrency=1", ...process.argv.slice(2)];
  const env = { ...process.env, ...variables };
  const [status] = await once(spawn(process.execPath, words, { stdio: "inherit", env }), "exit");
  process.exitCode = status ?? 1;
} finally {
  await end();
}
