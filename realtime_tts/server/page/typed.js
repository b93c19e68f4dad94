/**
 * What of a text field can be sent while somebody types in it.
 *
 * A word goes out once it is finished, so that it can still be corrected until then. What was sent
 * cannot be taken back: it may have been spoken. The field itself is never changed.
 */

// After a space, at the end of a sentence, and anywhere in scripts that put no space between words.
const SETTLED = /^[^]*(?:\s|[.!?…。！？]|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])/u;

export class TypedText {
  #sent = "";

  /** What of the field was given out. */
  get sent() {
    return this.#sent;
  }

  /** Nothing behind the first `length` characters was given out. @param {number} [length] */
  forget(length = 0) {
    this.#sent = this.#sent.slice(0, length);
  }

  /**
   * The text that is new and settled. Where text that was sent has been changed, what is new begins
   * with the change.
   *
   * @param {string} value of the field now
   * @param {{all?: boolean}} [options] `all`: the last word, too
   * @returns {{delta: string, changed: boolean}} `changed`: text that was sent
   */
  take(value, { all = false } = {}) {
    const same = common(this.#sent, value);
    const changed = same < this.#sent.length;
    const rest = value.slice(same);
    const delta = all ? rest : (SETTLED.exec(rest)?.[0] ?? "");
    this.#sent = value.slice(0, same) + delta;
    return { delta, changed };
  }
}

/** How many characters two texts begin with in common. @param {string} one @param {string} other */
function common(one, other) {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
