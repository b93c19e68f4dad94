/** The page's elements. */

/**
 * The element of this id; a missing one is a mistake of the page.
 *
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return /** @type {T} */ (found);
}

/**
 * A new element.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * Set a text, if it is another: a live region repeats what is set again.
 *
 * @param {Element} target
 * @param {string} text
 */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/**
 * Give a select its options. What was chosen stays so, if it is still there.
 *
 * @param {HTMLSelectElement} select
 * @param {string[]} names
 * @param {string} first chosen otherwise
 */
export function fill(select, names, first) {
  const chosen = names.includes(select.value) ? select.value : first;
  select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  select.value = chosen;
}

/** Whether a key pressed here is meant for this element. @param {EventTarget | null} target */
export function takesKeys(target) {
  const controls = "input, textarea, select, button, a, summary, [role=tab], [contenteditable]";
  return target instanceof Element && target.closest(controls) !== null;
}
