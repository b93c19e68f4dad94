/** The text of a turn, with what was heard of it set apart. */

import { element } from "./dom.js";
import { heardWord } from "./spoken.js";

/** @import { Speech } from "./speech.js" */

export class Transcript {
  #box;
  #shown = "";

  /** @param {HTMLElement} box */
  constructor(box) {
    this.#box = box;
  }

  /** @param {Speech | null} speech @param {number} pace */
  show(speech, pace) {
    const parts = speech ? (speech.report ? afterInterrupt(speech.report) : during(speech, pace)) : [];
    const shown = JSON.stringify(parts);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#box.replaceChildren(
      ...parts
        .filter(({ text }) => text !== "")
        .map(({ kind, text }) => element("span", attributes(kind), text)),
    );
    this.#follow();
  }

  /** Keep what is being heard in view. */
  #follow() {
    const now = /** @type {HTMLElement | null} */ (this.#box.querySelector(".now, .missed"));
    const last = /** @type {HTMLElement | null} */ (this.#box.querySelector(".heard"));
    const mark = now ?? last;
    if (!mark) return;
    const box = this.#box.getBoundingClientRect();
    const at = mark.getClientRects()[0];
    if (at && (at.top < box.top || at.bottom > box.bottom - 8)) {
      this.#box.scrollTop += at.top - box.top - box.height / 3;
    }
  }
}

/** @typedef {{kind: string, text: string}} Part */

/** The page's own words are not asked for the direction of the text. @param {string} kind */
const attributes = (kind) => ({ class: kind, ...(kind === "label" && { dir: "ltr" }) });

/** @param {Speech} speech @param {number} pace @returns {Part[]} */
function during(speech, pace) {
  const { text, heard, total } = speech;
  const { start, end } = heardWord(text, heard, { total, pace });
  const coming = speech.coming.startsWith(text) ? speech.coming.slice(text.length) : "";
  return [
    { kind: "heard", text: text.slice(0, start) },
    { kind: "now", text: text.slice(start, end) },
    { kind: "sent", text: text.slice(end) },
    { kind: "coming", text: coming },
  ];
}

/** @param {{textSpoken: string, textRemaining: string}} report @returns {Part[]} */
function afterInterrupt({ textSpoken, textRemaining }) {
  return [
    { kind: "label", text: textSpoken ? "Heard" : "" },
    { kind: "heard", text: textSpoken.trim() },
    { kind: "label", text: textRemaining.trim() ? "Not heard" : "" },
    { kind: "missed", text: textRemaining.trim() },
  ];
}
