/** The tab that speaks while somebody types. */

import { byId, say } from "./dom.js";
import { TypedText } from "./typed.js";

/** @import { Speech } from "./speech.js" */

const TAKEN_BACK = "What was sent cannot be taken back. To begin anew, use “Start over”.";

/** @param {() => Speech} speak begins a speech */
export function typing(speak) {
  const field = /** @type {HTMLTextAreaElement} */ (byId("typed"));
  const note = byId("typed-note");
  const endButton = /** @type {HTMLButtonElement} */ (byId("typed-end"));
  let typed = new TypedText();
  /** @type {Speech | null} */
  let speech = null;

  /** @param {boolean} all the unfinished word, too */
  function send(all) {
    if (speech && (speech.over || !speech.textOpen)) restart(speech);
    const delta = typed.take(field.value, { all });
    if (delta === null) return repair();
    say(note, "");
    if (!delta.trim() && !speech) return;
    if (!speech) begin();
    speech?.send(delta);
  }

  function begin() {
    speech = speak();
    const begun = speech;
    endButton.disabled = false;
    begun.addEventListener("over", () => {
      if (speech === begun) endButton.disabled = true;
    });
  }

  /** A new turn after one that is over: only what was typed since belongs to it. @param {Speech} old */
  function restart(old) {
    const before = typed.sent;
    const { value } = field;
    if (value.startsWith(before)) field.value = value.slice(before.length).trimStart();
    if (old.textOpen) old.end();
    typed = new TypedText();
    speech = null;
  }

  function repair() {
    if (field.value.trim() === "") return clear();
    field.value = typed.repaired(field.value);
    say(note, TAKEN_BACK);
  }

  function end() {
    send(true);
    speech?.end();
    endButton.disabled = true;
  }

  function clear() {
    speech?.end();
    speech = null;
    typed = new TypedText();
    field.value = "";
    endButton.disabled = true;
    say(note, "");
  }

  field.addEventListener("input", (event) => {
    if (!(/** @type {InputEvent} */ (event).isComposing)) send(false);
  });
  field.addEventListener("compositionend", () => send(false));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    end();
  });
  endButton.addEventListener("click", end);
  byId("typed-clear").addEventListener("click", () => {
    clear();
    field.focus();
  });
}
