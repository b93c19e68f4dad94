/** The one line that says how things stand: what went wrong, else the speech, else the server. */

import { byId, say } from "./dom.js";

/** @typedef {{state: string, text: string, when?: string}} Line `when` counts, and is not read aloud */

/** @type {Record<string, string>} */
const OF_SPEECH = {
  waiting: "Waiting for the first sound",
  locked: "Click anywhere to allow sound; if that is no help, this machine may have no loudspeaker",
  lost: "The connection was lost; connecting again …",
  speaking: "Speaking",
  held: "Held: all the text there is has been said",
  interrupted: "Interrupted",
  done: "Done",
};

export class Status {
  #line = byId("state");
  #words = byId("state-words");
  #when = byId("state-when");
  /** @type {Line} */
  #server = { state: "connecting", text: "Connecting …" };
  /** @type {{text: string, until: number, retries: boolean} | null} */
  #trouble = null;
  #changed;

  /** @param {() => void} changed there is something else to show */
  constructor(changed) {
    this.#changed = changed;
  }

  /** How the server is. @param {string} state @param {string} text */
  server(state, text) {
    this.#server = { state, text };
    this.#changed();
  }

  /**
   * What went wrong, in words; empty when it is over.
   *
   * @param {string} text
   * @param {number} [waitMs] after so long it is worth another try
   * @param {boolean} [retries] the page tries again then
   */
  trouble(text, waitMs = 0, retries = false) {
    const until = waitMs ? performance.now() + waitMs : 0;
    this.#trouble = text ? { text, until, retries } : null;
    this.#changed();
  }

  /** Whether it counts the seconds. @param {number} now */
  counts(now) {
    return this.#trouble !== null && this.#trouble.until > now;
  }

  /** @param {number} now @param {string} speech its state; "" for none @param {string} more behind that */
  show(now, speech, more) {
    const { state, text, when = "" } = this.#now(now, speech, more);
    this.#line.dataset["state"] = state;
    if (state === "trouble") this.#line.setAttribute("role", "alert");
    else this.#line.removeAttribute("role");
    say(this.#words, text);
    say(this.#when, when);
  }

  /** @param {number} now @param {string} speech @param {string} more @returns {Line} */
  #now(now, speech, more) {
    if (this.#trouble) {
      const { text, until, retries } = this.#trouble;
      if (!until) return { state: "trouble", text };
      const seconds = Math.ceil((until - now) / 1000);
      const when = seconds > 0 ? ` in ${seconds} s.` : " now.";
      return { state: "trouble", text: `${text} ${retries ? "Trying" : "Try"} again`, when };
    }
    // One that failed has none: what went wrong is said as trouble until it is over.
    const words = OF_SPEECH[speech];
    if (words && this.#server.state === "idle") return { state: speech, text: words + more };
    return this.#server;
  }
}
