/** Voices that people bring: made of a recording, blended of two others, deleted. */

import { byId, element, fill, say } from "./dom.js";
import { record, take } from "./recording.js";
import { slider } from "./streaming.js";

/** @import { Player } from "/client/player.js" */
/** @import { Take } from "./recording.js" */
/** @import { About, Server, Voice } from "./server.js" */

const LONGEST_MS = 60_000; // the server takes no more

export class OwnVoices {
  #server;
  #changed;
  #player;
  #said = byId("own-said");
  #record = /** @type {HTMLButtonElement} */ (byId("own-record"));
  #hear = /** @type {HTMLButtonElement} */ (byId("own-hear"));
  #share;
  /** @type {Take | null} */
  #take = null;
  /** @type {(() => Promise<void>) | null} */
  #stop = null;
  #starting = false;

  /**
   * @param {Server} server
   * @param {Player} player
   * @param {(voice: string) => Promise<void>} changed the server has other voices now, `voice` among
   *   them; "" after one was deleted
   */
  constructor(server, player, changed) {
    this.#server = server;
    this.#player = player;
    this.#changed = changed;
    this.#share = slider("blend-share", (value) => `${100 - value} % of the first, ${value} % of the second`);
    this.#record.addEventListener("click", () => this.#attempt(() => this.#recordOrStop()));
    this.#hear.addEventListener("click", () => this.#listen());
    const file = /** @type {HTMLInputElement} */ (byId("own-file"));
    file.addEventListener("change", () => {
      const chosen = file.files?.[0];
      if (chosen) void this.#attempt(() => this.#use(chosen));
    });
    byId("own-read").addEventListener("click", () => {
      field("own-text").value = plain(byId("passage").textContent ?? "");
    });
    this.#onSubmit("own-form", () => this.#make());
    this.#onSubmit("blend-form", () => this.#blend());
  }

  /** @param {About} about @param {boolean} passedOn by a program that takes no voices */
  offer(about, passedOn) {
    byId("own").hidden = !about.clones || passedOn;
    const registered = about.details.filter(({ kind }) => kind === "registered");
    byId("own-list").replaceChildren(...registered.map((voice) => this.#row(voice)));
    const names = registered.map(({ id }) => id);
    byId("blend-form").hidden = names.length < 2;
    fill(/** @type {HTMLSelectElement} */ (byId("blend-first")), names, names[0] ?? "");
    fill(/** @type {HTMLSelectElement} */ (byId("blend-second")), names, names[1] ?? "");
  }

  /** @param {Voice} voice */
  #row({ id }) {
    const remove = element("button", { type: "button", class: "quiet", "data-delete": id }, "Delete");
    remove.addEventListener("click", () => {
      if (confirm(`Delete the voice ${id}? It cannot be brought back.`)) {
        void this.#attempt(() => this.#delete(id));
      }
    });
    return element("li", {}, id, remove);
  }

  /* The recording. */

  async #recordOrStop() {
    if (this.#stop) return this.#stop();
    if (this.#starting) return; // the browser is asking for the microphone
    this.#starting = true;
    const end = await record().finally(() => (this.#starting = false));
    const began = performance.now();
    const tell = setInterval(() => {
      const seconds = Math.round((performance.now() - began) / 1000);
      say(this.#record, `Stop (${seconds} s)`);
      if (performance.now() - began >= LONGEST_MS) void this.#attempt(() => this.#stop?.());
    }, 200);
    say(this.#record, "Stop");
    this.#stop = async () => {
      this.#stop = null;
      clearInterval(tell);
      say(this.#record, "Record again");
      await this.#use(await end());
    };
  }

  /** @param {Blob} blob */
  async #use(blob) {
    this.#take = await take(blob);
    this.#hear.disabled = false;
    say(this.#said, `There are ${this.#take.sound.duration.toFixed(1)} s of sound.`);
  }

  #listen() {
    const { context } = this.#player;
    const source = new AudioBufferSourceNode(context, { buffer: this.#take?.sound ?? null });
    source.connect(context.destination);
    source.start();
  }

  /* Asking the server. */

  async #make() {
    if (!this.#take) throw new Error("Record something first, or choose a file.");
    const form = new FormData();
    form.set("name", field("own-name").value.trim());
    form.set("audio", this.#take.file, "recording.wav");
    const text = plain(field("own-text").value); // forms send line ends in a way of their own
    if (text) form.set("text", text);
    await this.#made(await this.#server.makeVoice(form));
  }

  /** Only the sound is blended: the new voice has an embedding and no recording. */
  async #blend() {
    const [first, second] = ["blend-first", "blend-second"].map((id) => field(id).value);
    if (!first || !second || first === second) throw new Error("Choose two different voices.");
    const [one, other] = await Promise.all([first, second].map((id) => this.#server.embedding(id)));
    if (!one || !other || one.model !== other.model) {
      throw new Error(`${first} and ${second} belong to different checkpoints.`);
    }
    const share = this.#share() / 100;
    const embedding = one.embedding.map((x, i) => (1 - share) * x + share * (other.embedding[i] ?? 0));
    const name = field("blend-name").value.trim();
    await this.#made(await this.#server.makeVoice({ name, model: one.model, embedding }));
  }

  /** @param {Voice} voice */
  async #made({ id, in_context: whole }) {
    await this.#changed(id);
    const how = whole ? "with its manner of speaking" : "by its sound alone";
    say(this.#said, `${id} is chosen, ${how}. Press Play to hear it.`);
  }

  /** @param {string} id */
  async #delete(id) {
    await this.#server.deleteVoice(id);
    await this.#changed("");
    say(this.#said, `${id} is deleted.`);
  }

  /** @param {string} form @param {() => Promise<void>} act */
  #onSubmit(form, act) {
    byId(form).addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#attempt(act);
    });
  }

  /** What goes wrong is said where it was asked for. @param {() => Promise<void> | undefined} act */
  async #attempt(act) {
    say(this.#said, "One moment …");
    this.#said.classList.remove("wrong");
    try {
      await act();
      if (this.#said.textContent === "One moment …") say(this.#said, "");
    } catch (error) {
      this.#said.classList.add("wrong");
      say(this.#said, /** @type {Error} */ (error).message);
    }
  }
}

/** On one line. @param {string} text */
const plain = (text) => text.replace(/\s+/g, " ").trim();

/** @param {string} id */
const field = (id) => /** @type {HTMLInputElement} */ (byId(id));
