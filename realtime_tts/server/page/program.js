/** The same as a program, to read and to copy, of what the field holds and the options say. */

import { Trouble } from "./server.js";
import { byId, say } from "./dom.js";
import { SNIPPETS } from "./snippets.js";

/** @typedef {{voice?: string, language?: string, text: string, key: boolean}} Wanted */

export class Program {
  #wanted;
  #failed;
  #name = "python";

  /** @param {() => Wanted} wanted @param {(trouble: Error) => void} failed */
  constructor(wanted, failed) {
    this.#wanted = wanted;
    this.#failed = failed;
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.addEventListener("click", () => {
        this.#name = /** @type {HTMLElement} */ (button).dataset["copy"] ?? "";
        this.show();
        void this.copy(this.#text, `${button.textContent} copied`);
      });
    }
    for (const id of ["text", "typed", "voice", "language"]) {
      byId(id).addEventListener("input", () => this.show());
    }
    byId("code").addEventListener("toggle", () => this.show());
  }

  get #text() {
    const { voice = "", language = "", text, key } = this.#wanted();
    return SNIPPETS[this.#name]?.({ origin: location.origin, text, voice, language, key }) ?? "";
  }

  show() {
    if (/** @type {HTMLDetailsElement} */ (byId("code")).open) say(byId("program"), this.#text);
  }

  /** @param {string} text @param {string} done */
  async copy(text, done) {
    try {
      await navigator.clipboard.writeText(text);
      say(byId("copied"), done);
    } catch {
      const why = "The browser does not let this page copy; it does over https or on this machine.";
      this.#failed(new Trouble("copy", why));
    }
    setTimeout(() => say(byId("copied"), ""), 3000);
  }
}
