/** The tab that speaks while somebody types. */

import { byId, say } from "./dom.js";
import { TypedText } from "./typed.js";

/** @import { Speech } from "./speech.js" */

const TAKEN_BACK = "What was sent cannot be taken back; what you type now follows it.";
/** Without a key for so long, the turn is ended: nobody is kept waiting for its place. */
const IDLE_MS = 8_000;
/** Without sound for so long, all the text has been spoken. */
const QUIET_MS = 2_000;

/**
 * @param {() => Speech} speak begins a speech
 * @returns {{play: () => void, retry: () => void}} `play`: what was not spoken, or else all of it
 *   again; `retry`: what is finished and was not spoken, and more may follow
 */
export function typing(speak) {
  const field = /** @type {HTMLTextAreaElement} */ (byId("typed"));
  const note = byId("typed-note");
  const typed = new TypedText();
  /** @type {Speech | null} */
  let speech = null;
  let idle = 0;

  /** @param {boolean} all the unfinished word, too */
  function send(all) {
    // What is new is another turn's. One that is being interrupted takes no text any more.
    if (speech?.stop.signal.aborted || !speech?.textOpen) speech = null;
    const before = typed.sent.length;
    const { delta, changed } = typed.take(field.value, { all });
    say(note, changed && speech ? TAKEN_BACK : "");
    if (delta.trim() || speech) begin(before).send(delta);
    clearTimeout(idle);
    idle = window.setTimeout(rest, IDLE_MS);
  }

  /** No key came for long. */
  function rest() {
    const heardAt = speech?.trace.lastPacketAt ?? -Infinity;
    if (performance.now() - heardAt > QUIET_MS) return speech?.end();
    // It still says what was pasted: what is typed now follows that, so the server is to wait, too.
    speech?.flush();
    idle = window.setTimeout(rest, IDLE_MS);
  }

  /** The speech that takes the text behind so many characters of the field. @param {number} before */
  function begin(before) {
    if (speech) return speech;
    const begun = (speech = speak());
    begun.addEventListener("over", () => {
      if (begun.trouble) typed.forget(before); // nobody heard it: it is still to be spoken
      if (speech === begun) speech = null;
    });
    return begun;
  }

  function play() {
    if (typed.sent.trim() === field.value.trim()) typed.forget();
    if (!field.value.trim()) return field.focus();
    send(true);
    speech?.end();
  }

  field.addEventListener("input", (event) => {
    if (!(/** @type {InputEvent} */ (event).isComposing)) send(false);
  });
  field.addEventListener("compositionend", () => send(false));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send(true);
    speech?.end();
  });
  return { play, retry: () => send(false) };
}
