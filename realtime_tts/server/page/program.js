/** The same as a program, to read and to copy, of what the field holds and the options say. */

import { Trouble } from "./server.js";
import { byId, say } from "./dom.js";
import { SNIPPETS } from "./snippets.js";
import { tabs } from "./tabs.js";

/** @import { Settings } from "./speaker.js" */

/** @typedef {{settings: Settings, text: string, key: boolean}} Wanted */

export class Program {
  #wanted;
  #failed;
  #name = "python";
  #forget = 0;

  /** @param {() => Wanted} wanted @param {(trouble: Error) => void} failed */
  constructor(wanted, failed) {
    this.#wanted = wanted;
    this.#failed = failed;
    const choose = tabs(byId("languages"), (name) => {
      this.#name = name;
      this.show();
    });
    choose(this.#name);
    byId("copy").addEventListener("click", () => void this.copy(this.#text(this.#name)));
    document.addEventListener("input", () => this.show()); // whatever it was: it may be an option
    byId("code").addEventListener("toggle", () => this.show());
  }

  /** @param {string} name */
  #text(name) {
    return SNIPPETS[name]?.({ origin: location.origin, ...this.#wanted() }) ?? "";
  }

  show() {
    const { open } = /** @type {HTMLDetailsElement} */ (byId("code"));
    if (open) say(byId(`program-${this.#name}`), this.#text(this.#name));
  }

  /** @param {string} text @param {HTMLElement} [told] where it is said */
  async copy(text, told = byId("copied")) {
    try {
      await navigator.clipboard.writeText(text);
      say(told, "Copied");
    } catch {
      const why = "The browser does not let this page copy; it does over https or on this machine.";
      this.#failed(new Trouble("copy", why));
    }
    clearTimeout(this.#forget);
    this.#forget = window.setTimeout(() => say(told, ""), 3000);
  }
}
