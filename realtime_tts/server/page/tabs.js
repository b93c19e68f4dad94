/** Tabs as the ARIA practices want them: one stop for Tab, arrows between, the panel follows. */

/**
 * @param {HTMLElement} list role=tablist
 * @param {(name: string) => void} chosen called with the id behind `tab-`
 * @returns {(name: string) => void} to choose one
 */
export function tabs(list, chosen) {
  const all = /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[role=tab]")]);

  /** @param {HTMLElement} tab */
  function choose(tab) {
    for (const other of all) {
      const is = other === tab;
      other.setAttribute("aria-selected", String(is));
      other.tabIndex = is ? 0 : -1;
      const panel = document.getElementById(other.getAttribute("aria-controls") ?? "");
      if (panel) panel.hidden = !is;
    }
    chosen(tab.id.replace("tab-", ""));
  }

  list.addEventListener("click", (event) => {
    const tab = all.find((one) => one === event.target);
    if (tab) choose(tab);
  });
  list.addEventListener("keydown", (event) => {
    const at = all.findIndex((one) => one === event.target);
    const last = all.length - 1;
    /** @type {Record<string, number>} */
    const next = {
      ArrowRight: at === last ? 0 : at + 1,
      ArrowLeft: at === 0 ? last : at - 1,
      Home: 0,
      End: last,
    };
    const tab = all[next[event.key] ?? -1];
    if (at < 0 || !tab) return;
    event.preventDefault();
    choose(tab);
    tab.focus();
  });
  return (name) => {
    const tab = all.find((one) => one.id === `tab-${name}`);
    if (tab) choose(tab);
  };
}
