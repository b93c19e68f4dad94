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
export const until = (page, wanted) =>
  page.waitForSelector(`#state[data-state="${wanted}"]`, { timeout: 15_000 });
/** Until the server has said what was heard. */
export const interrupted = (page) =>
  page.waitForFunction(() => /^Interrupted/.test(document.querySelector("#announce").textContent));
export const words = (page, kind) =>
  page.$$eval(`#transcript .${kind}`, (found) => found.map((one) => one.textContent).join(""));
export const figure = async (page, id) => parseFloat(await page.textContent(`#f-${id}`));
/** What the button would do now. */
export const does = (page, wanted) =>
  page.waitForFunction((wanted) => document.querySelector("#play").dataset.does === wanted, wanted);

/** A value that is shown to who asks for more. */
export async function more(page, name) {
  await page.evaluate((id) => (document.getElementById(id).open = true), name);
}

/** Play `text`, which comes as from a model; resolves when sound has come. */
export async function stream(page, text) {
  await page.click("#tab-speak");
  await page.fill("#text", text);
  await page.click("#play");
  await page.waitForFunction(() => parseFloat(document.querySelector("#f-packets").textContent) > 3);
}
