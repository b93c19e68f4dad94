/** What a session is asked for: the controls that the loaded checkpoints have a use for. */

import { byId, fill, say } from "./dom.js";
import { Voices } from "./voices.js";

/** @import { About, Model } from "./server.js" */
/** @import { Settings } from "./speaker.js" */

const LABELS = { voice_design: "Describe the voice", other: "How to speak, in words" };
const EXAMPLE = "A calm older man with a warm, low voice, who takes his time.";
const NO_VOICE = "This checkpoint speaks with recorded voices, and there is none yet: make one below.";

export class Controls {
  #voices;
  #language = /** @type {HTMLSelectElement} */ (byId("language"));
  #pacing = /** @type {HTMLSelectElement} */ (byId("pacing"));
  #layout = /** @type {HTMLSelectElement} */ (byId("layout"));
  #manner = byId("manner");
  #words = /** @type {HTMLTextAreaElement} */ (byId("instructions"));
  /** @type {About | null} */
  #about = null;
  /** The checkpoint whose words are in the field, and those of the others. @type {Model | null} */
  #shown = null;
  /** @type {Map<string, string>} */
  #said = new Map();

  /** @param {() => void} listen plays with the voice that is chosen */
  constructor(listen) {
    this.#voices = new Voices(() => {
      this.#fit();
      listen();
    });
    byId("voice").addEventListener("change", () => this.#fit());
  }

  /** @param {About} about */
  offer(about) {
    this.#about = about;
    const described = about.models.some(({ variant }) => variant === "voice_design");
    this.#voices.offer(about.voices, about.default_voice ?? about.voices[0] ?? "", described);
    fill(this.#language, about.languages, "auto");
    this.#fit();
  }

  /** @param {string} voice one of those on offer */
  choose(voice) {
    this.#voices.choose(voice);
    this.#fit();
  }

  /** Why nothing can be spoken with these; "" if it can. */
  get missing() {
    const model = this.#model;
    return model?.variant === "base" && !this.#voices.chosen ? NO_VOICE : "";
  }

  /** What the checkpoint has no choice of is null: it is left to the server. @returns {Settings} */
  get settings() {
    const model = this.#model;
    const several = (this.#about?.models.length ?? 0) > 1;
    /** @returns {any} one of its options, as the page has them */
    const auto = (/** @type {HTMLSelectElement} */ { value }) => (value === "auto" ? null : value);
    return {
      model: several && !this.#voices.chosen ? (model?.model ?? null) : null,
      voice: this.#voices.chosen || null,
      language: this.#language.value || null,
      instructions: (model?.instructions && this.#words.value.trim()) || null,
      pacing: auto(this.#pacing),
      layout: auto(this.#layout),
    };
  }

  /** The checkpoint that would speak. */
  get #model() {
    const { models = [], details = [] } = this.#about ?? {};
    const voice = details.find(({ id }) => id === this.#voices.chosen);
    const found = voice
      ? models.find(({ model }) => model === voice.model) ??
        models.find(({ variant }) => variant === "base") // the voice tells its family
      : models.find(({ variant }) => variant === "voice_design");
    return found ?? models[0] ?? null;
  }

  /** The field for words is there for a checkpoint that heeds them, with those meant for it. */
  #fit() {
    const model = this.#model;
    this.#manner.hidden = !model?.instructions;
    if (!model || model.model === this.#shown?.model) return;
    if (this.#shown) this.#said.set(this.#shown.model, this.#words.value);
    this.#shown = model;
    const designs = model.variant === "voice_design";
    say(byId("manner-label"), designs ? LABELS.voice_design : LABELS.other);
    this.#words.value = this.#said.get(model.model) ?? (designs ? EXAMPLE : "");
  }
}
