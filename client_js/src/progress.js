/** @import * as wire from "../types/messages.js" */
/** @import { Outbox } from "./outbox.js" */

const CODES_AT_ONCE = 64;

/** What another session needs to go on with a turn. */
export class Progress {
  /** @type {wire.TurnState | null} before its packet */
  #next = null;
  /** @type {wire.TurnState | null} */
  #last = null;
  /** @type {string | undefined} */
  #part;
  /** @type {string[]} */
  #codes = [];

  get known() {
    return this.#last !== null;
  }

  /** @param {wire.TurnState} message */
  state(message) {
    this.#next = message;
  }

  packet() {
    if (!this.#next) return;
    const { part, codes } = (this.#last = this.#next);
    this.#next = null;
    if (part) [this.#part, this.#codes] = [part, []];
    if (codes) this.#codes.push(codes);
  }

  /** @param {Outbox} outbox @param {string} turn_id @param {wire.Word[]} words */
  resume(outbox, turn_id, words) {
    if (!this.#last) return;
    const all = [...this.#codes];
    while (all.length) {
      outbox.send({ type: "turn.codes", turn_id, codes: all.splice(0, CODES_AT_ONCE) });
    }
    const { samples, text_chars, state } = this.#last;
    const words_chars = [...words.map((word) => word.text).join("")].length;
    const part = this.#part;
    this.#next = null;
    outbox.send({ type: "turn.resume", turn_id, samples, text_chars, words_chars, part, state });
  }
}
