/** A conversation as a language model should remember it: what the person heard, and no more. */

/** @typedef {{role: "user" | "assistant", content: string}} Message */

export class History {
  /** @type {Message[]} */
  messages = [];

  /** @param {string} content */
  user(content) {
    this.messages.push({ role: "user", content });
  }

  /** The reply that is now being written. @returns {Message} */
  reply() {
    /** @type {Message} */
    const message = { role: "assistant", content: "" };
    this.messages.push(message);
    return message;
  }

  /**
   * The person interrupted: the reply ends where they stopped hearing it. A reply of which nothing
   * was heard was never made.
   *
   * @param {Message} message
   * @param {string} heard
   */
  cut(message, heard) {
    message.content = heard.trimEnd();
    if (!message.content) this.messages = this.messages.filter((one) => one !== message);
  }

  /** What to send to the model. @returns {Message[]} */
  toSend() {
    return this.messages.filter(({ content }) => content !== "").map((message) => ({ ...message }));
  }
}
