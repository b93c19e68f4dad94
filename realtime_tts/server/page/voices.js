/** The voices: a list to choose from, and a button for each to listen to it at once. */

import { byId, element, fill } from "./dom.js";

const MOST_CHIPS = 9;

export class Voices {
  #select = /** @type {HTMLSelectElement} */ (byId("voice"));
  #chips = byId("chips");
  #listen;

  /** @param {() => void} listen plays with the voice that is chosen */
  constructor(listen) {
    this.#listen = listen;
    this.#select.addEventListener("change", () => this.#press());
  }

  /** The one that is chosen; "" where it is described in words, or there is none. */
  get chosen() {
    return this.#select.value;
  }

  /**
   * @param {string[]} names
   * @param {string} first chosen, if no other is
   * @param {boolean} described whether a voice can be described in words instead
   */
  offer(names, first, described) {
    fill(this.#select, names, first);
    if (described) this.#select.append(element("option", { value: "" }, "described in words"));
    if (described && !names.length) this.#select.value = "";
    this.#select.disabled = this.#select.options.length === 0;
    const chips = names.length > 1 && names.length <= MOST_CHIPS ? names : [];
    this.#chips.replaceChildren(...chips.map((name) => this.#chip(name)));
    this.#chips.hidden = chips.length === 0;
    this.#press();
  }

  /** @param {string} name */
  choose(name) {
    this.#select.value = name;
    this.#press();
  }

  /** @param {string} name */
  #chip(name) {
    const chip = element("button", { type: "button", "data-voice": name }, name);
    chip.addEventListener("click", () => {
      this.choose(name);
      this.#listen();
    });
    return chip;
  }

  #press() {
    for (const chip of this.#chips.children) {
      const name = /** @type {HTMLElement} */ (chip).dataset["voice"];
      chip.setAttribute("aria-pressed", String(name === this.#select.value));
    }
  }
}
