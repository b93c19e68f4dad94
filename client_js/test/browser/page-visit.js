import assert from "node:assert/strict";

import { open } from "./harness.js";

export const PHONE = { width: 390, height: 844 };

/** The demo page as somebody finds it. `errors`: whatever it complained about in the console. */
export async function visit(t, url, { theme = "light", size, reduced, hash = "", before } = {}) {
  const page = await open(t, url);
  page.on("console", (message) => {
    if (message.type() === "error") page.errors.push(message.text());
  });
  await page.emulateMedia({ colorScheme: theme, reducedMotion: reduced ? "reduce" : null });
  if (size) await page.setViewportSize(size);
  await before?.(page);
  await page.goto(`${url}/${hash}`);
  return page;
}

/** Until the server's voices are there. */
export async function met(page) {
  await page.waitForFunction(() => document.querySelector("#voice").options.length > 0);
}

export const state = (page) => page.getAttribute("#state", "data-state");
/** Looks at every picture; `waitForSelector` looks twice a second, and misses what is short. */
export const until = (page, wanted) =>
  page.waitForFunction((wanted) => document.querySelector("#state").dataset.state === wanted, wanted);
/** Until the server has said what was heard. */
export const interrupted = (page) =>
  page.waitForFunction(() => /^Interrupted/.test(document.querySelector("#announce").textContent));
export const words = (page, kind) =>
  page.$$eval(`#transcript .${kind}`, (found) => found.map((one) => one.textContent).join(""));
export const figure = async (page, id) => parseFloat(await page.textContent(`#f-${id}`));
/** What the button would do now. */
export const does = (page, wanted) =>
  page.waitForFunction((wanted) => document.querySelector("#play").dataset.does === wanted, wanted);

/** Until the page says what went wrong. */
export const trouble = async (page, about) => {
  await page.waitForFunction((words) => document.querySelector("#state").textContent.includes(words), about);
  assert.equal(await page.getAttribute("#state", "role"), "alert");
};

export const LONG = "The tide is coming in, slowly but surely, and all the boats are afloat again. ".repeat(3);

/** Sessions are refused as long as `full` says so. */
export const refusing = (page, full, waitMs, message = "all sessions are taken") =>
  page.routeWebSocket(/\/v1\/tts/, (socket) => {
    if (!full()) return socket.connectToServer();
    const error = { type: "error", code: "too_many_sessions", message, fatal: true };
    socket.send(JSON.stringify({ ...error, retryable: true, retry_after_ms: waitMs }));
    socket.close({ code: 1013 });
  });

/** Runs in the page: the server is never told that a text has ended, so no turn is over by itself. */
export const endless = () => {
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (message) {
    const { end, ...rest } = JSON.parse(message);
    if (rest.type !== "turn.end") send.call(this, JSON.stringify(rest));
  };
};

/** A value that is shown to who asks for more. */
export async function more(page, name) {
  await page.evaluate((id) => (document.getElementById(id).open = true), name);
}

/** Play `text`, which comes as from a model; resolves when its sound has come, not that of a speech before. */
export async function stream(page, text) {
  await page.click("#tab-speak");
  await page.fill("#text", text);
  await page.click("#play");
  await page.waitForFunction((text) => document.querySelector("#transcript").textContent === text, text);
  await page.waitForFunction(() => parseFloat(document.querySelector("#f-packets").textContent) > 3);
}

/** What is wrong with the page as it stands, in words. Runs in the page. */
export function faults() {
  const found = [];
  const visible = (one) => one.getClientRects().length > 0 && getComputedStyle(one).visibility !== "hidden";
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`#${id} twice`);
  for (const one of document.querySelectorAll("button, a, input, select, textarea, meter, [role=img]")) {
    const labels = [...(one.labels ?? [])].map((label) => label.textContent).join("");
    const name = one.getAttribute("aria-label") || labels || (one.matches("button, a") ? one.textContent : "");
    if (!name.trim()) found.push(`${one.outerHTML.slice(0, 60)} has no name`);
  }
  for (const attribute of ["aria-controls", "aria-labelledby", "aria-describedby", "for"]) {
    for (const one of document.querySelectorAll(`[${attribute}]`)) {
      for (const id of one.getAttribute(attribute).split(" ")) {
        if (!document.getElementById(id)) found.push(`${attribute}=${id} leads nowhere`);
      }
    }
  }
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (!document.documentElement.lang) found.push("no language");
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      if (!/, 0\)$/.test(backgroundColor)) return backgroundColor;
    }
    return "rgb(255, 255, 255)";
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const one = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !visible(one) || one.closest(":disabled, noscript, .sr")) continue;
    const [a, b] = [getComputedStyle(one).color, ground(one)].map(light).sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(1)}: ${one.textContent.trim().slice(0, 30)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("wider than the screen");
  return found;
}
