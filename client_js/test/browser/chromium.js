import { existsSync } from "node:fs";

export const CHROMIUMS = [
  process.env.CHROMIUM,
  "/usr/bin/chromium-headless-shell", // without a window's toolbars, half the work
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].filter(Boolean);
export const FLAGS = [
  "--no-sandbox", // containers run as root
  // A page that a test makes up came from no address, and so might not talk to this machine.
  "--disable-features=LocalNetworkAccessChecks",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Another machine, as far as the browser knows: plain http from there is not secure.
  "--host-resolver-rules=MAP elsewhere.test 127.0.0.1",
  // A microphone that hears a beep each second, and that every page may have.
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
];

/** Where it is; undefined if it is nowhere. */
export const chromium = CHROMIUMS.find(existsSync);
