/** What the page hears of its own voice. */

/**
 * Whether `words` are part of what is spoken, whatever the marks and cases.
 *
 * @param {string} words
 * @param {string} spoken
 */
export function echoes(words, spoken) {
  const plain = (/** @type {string} */ text) =>
    ` ${text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu)?.join(" ") ?? ""} `;
  return plain(spoken).includes(plain(words));
}
