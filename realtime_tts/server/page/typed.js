/**
 * What of a text field can be sent while somebody types in it.
 *
 * A word goes out once it is finished, so that it can still be corrected until then. What was sent
 * cannot be taken back: it may have been spoken.
 */

// After a space, at the end of a sentence, and anywhere in scripts that put no space between words.
const SETTLED = /^[^]*(?:\s|[.!?…。！？]|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])/u;

export class TypedText {
  #sent = "";

  /** All that was given out. */
  get sent() {
    return this.#sent;
  }

  /**
   * The text that is new and settled.
   *
   * @param {string} value of the field now
   * @param {{all?: boolean}} [options] `all`: the last word, too
   * @returns {string | null} null if the value no longer begins with what was sent
   */
  take(value, { all = false } = {}) {
    if (!value.startsWith(this.#sent)) return null;
    const rest = value.slice(this.#sent.length);
    const delta = all ? rest : (SETTLED.exec(rest)?.[0] ?? "");
    this.#sent += delta;
    return delta;
  }

  /**
   * What the field should hold after a change to text that was sent: that text, and what follows.
   *
   * @param {string} value
   */
  repaired(value) {
    const kept = Math.max(0, value.length - this.#sent.length);
    return this.#sent + (kept ? value.slice(value.length - kept) : "");
  }
}
