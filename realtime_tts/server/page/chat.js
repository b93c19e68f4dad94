/**
 * The tab that talks with a language model.
 *
 * The chat example (examples/chat) serves this page beside POST /chat, which streams a model's reply.
 * The text goes into a turn as it comes; after an interrupt the history holds what was heard.
 */

import { byId, element, say } from "./dom.js";
import { ears } from "./ears.js";
import { History } from "./history.js";
import { microphone } from "./microphone.js";
import { Trouble } from "./server.js";

/** @import { Message } from "./history.js" */
/** @import { Speaker } from "./speaker.js" */
/** @import { Speech } from "./speech.js" */

const COMMAND = (/** @type {string} */ origin) =>
  `pip install -e '.[chat]'
python examples/chat/app.py \\
  --tts ${origin} \\
  --llm-url https://…/v1 \\
  --llm-model …`;

export class Chat {
  history = new History();
  #speaker;
  #speak;
  #failed;
  #log = byId("chat-log");
  #field = /** @type {HTMLTextAreaElement} */ (byId("chat-say"));
  /** The line of a reply that a full server refused. @type {HTMLElement | null} */
  #refused = null;

  /**
   * @param {Speaker} speaker
   * @param {() => Speech} speak begins a speech
   * @param {(words: string) => void} failed
   */
  constructor(speaker, speak, failed) {
    this.#speaker = speaker;
    this.#speak = speak;
    this.#failed = failed;
    say(byId("chat-command"), COMMAND(location.origin));
    byId("chat-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#submit();
    });
    this.#field.addEventListener("input", () => void this.#barge());
    this.#field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      void this.#submit();
    });
    microphone(() => void this.#barge(), failed);
    const spoken = () => (speaker.speaking ? (speaker.current?.text ?? "") : "");
    ears({ heard: (words, final) => this.#hear(words, final), spoken, failed });
  }

  /** @param {string | null} model that the server offers to talk with */
  offer(model) {
    byId("chat-absent").hidden = model !== null;
    byId("chat-present").hidden = model === null;
  }

  /** Ask for the reply that was refused again. False if the person has begun to say more. */
  retry() {
    if (!this.#refused || this.#field.value) return false;
    this.#refused.remove();
    this.#answer(this.#speak());
    return true;
  }

  async #barge() {
    if (this.#speaker.speaking) await this.#speaker.interrupt();
  }

  /** @param {string} words @param {boolean} final */
  #hear(words, final) {
    this.#field.value = words;
    if (final) void this.#submit();
    else void this.#barge();
  }

  async #submit() {
    const text = this.#field.value.trim();
    if (!text) return;
    this.#field.value = "";
    const speech = this.#speak(); // now, in the key press, where sound may begin
    await this.#settled;
    this.history.user(text);
    this.#show("user", "You", text);
    this.#answer(speech);
  }

  /** @param {Speech} speech */
  #answer(speech) {
    const message = this.history.reply();
    const line = this.#show("assistant", "Reply", "");
    this.#settled = this.#reply(speech, message, line);
  }

  /** The reply before this one is in the history as it was heard. @type {Promise<void>} */
  #settled = Promise.resolve();

  /** @param {Speech} speech @param {Message} message @param {HTMLElement} line */
  async #reply(speech, message, line) {
    this.#refused = null;
    line.setAttribute("aria-busy", "true"); // or screen readers say all of it again with each delta
    const over = new Promise((resolve) => speech.addEventListener("over", resolve));
    try {
      for await (const delta of replyOf(this.history.toSend(), speech.stop.signal)) {
        if (speech.over) break;
        message.content += delta;
        line.lastChild?.replaceWith(message.content);
        this.#log.scrollTop = this.#log.scrollHeight;
        speech.send(delta);
      }
    } catch (error) {
      if (!speech.stop.signal.aborted) this.#failed(/** @type {Error} */ (error).message);
    }
    speech.end();
    if (!speech.over) await over;
    if (speech.report) this.history.cut(message, speech.report.textSpoken);
    else if (speech.trouble) this.history.cut(message, ""); // nothing was spoken
    if (speech.trouble instanceof Trouble && speech.trouble.waitMs > 0) this.#refused = line;
    line.lastChild?.replaceWith(shown(message, speech));
    line.removeAttribute("aria-busy");
  }

  /** @param {string} role @param {string} name @param {string} text */
  #show(role, name, text) {
    const who = element("b", { dir: "ltr" }, name); // so that the text alone tells the line's direction
    const line = element("li", { "data-role": role, dir: "auto" }, who, text || "…");
    this.#log.append(line);
    this.#log.scrollTop = this.#log.scrollHeight;
    return line;
  }
}

/** @param {Message} message @param {Speech} speech */
function shown(message, speech) {
  if (speech.trouble) return message.content || "(not spoken)";
  if (!speech.report) return message.content || "(no reply)";
  return message.content ? `${message.content} — (interrupted)` : "(interrupted before a word)";
}

/**
 * The deltas of a reply; stops the model when `signal` is aborted.
 *
 * @param {Message[]} messages
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<string>}
 */
async function* replyOf(messages, signal) {
  const answer = await fetch("/chat", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages }),
    signal,
  }).catch((error) => {
    throw signal.aborted ? error : new Error("The chat example does not answer. Is it still running?");
  });
  if (!answer.ok || !answer.body) throw new Error(`The chat example answered ${answer.status}.`);
  for await (const line of lines(answer.body)) {
    const event = JSON.parse(line);
    if (event.error) throw new Error(event.error);
    if (event.delta) yield event.delta;
  }
}

/** @param {ReadableStream<Uint8Array>} body */
async function* lines(body) {
  const decoder = /** @type {any} */ (new TextDecoderStream());
  const reader = body.pipeThrough(decoder).getReader(); // Safari has no `for await`
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((cause) => {
      throw new Error("The reply broke off: the chat example no longer answers.", { cause });
    });
    const parts = (rest + (value ?? "")).split("\n");
    rest = done ? "" : (parts.pop() ?? "");
    yield* parts.filter((part) => part.trim() !== "");
    if (done) return;
  }
}
