/** A session and a player: one voice that says one thing at a time. */

import { Player } from "/client/player.js";
import { Speech } from "./speech.js";
import { expectedSeconds } from "./spoken.js";

/** @import { RealtimeTTS } from "/client/index.js" */
/** @import { Server } from "./server.js" */

/**
 * Null: left to the server.
 *
 * @typedef {object} Settings
 * @property {string | null} model
 * @property {string | null} voice
 * @property {string | null} language
 * @property {string | null} instructions
 * @property {"token" | "clause" | "sentence" | null} pacing
 * @property {"streaming" | "full_text" | null} layout
 */

/** A browser that lets sound begin does so within this time. */
const UNLOCK_MS = 600;

export class Speaker extends EventTarget {
  /** @type {Speech | null} */
  current = null;
  #server;
  /** @type {Promise<RealtimeTTS> | null} */
  #session = null;
  #inForce = "";
  /** @type {Promise<unknown>} */
  #connecting = Promise.resolve();
  /** @type {Map<string, number>} how much longer than expected each voice takes */
  #paces = new Map();
  #scope = new Float32Array(1024);

  /** @param {Server} server @param {Player} [player] */
  constructor(server, player = new Player()) {
    super();
    this.#server = server;
    this.player = player;
    this.player.addEventListener("underrun", () => {
      const speech = this.current;
      if (speech && !speech.over) speech.trace.gap(performance.now(), speech.textOpen);
    });
  }

  get speaking() {
    return this.current !== null && !this.current.over;
  }

  /** @param {string | null} voice */
  pace(voice) {
    return this.#paces.get(voice ?? "") ?? 1;
  }

  /** Connect ahead of the first text. @param {Settings} settings */
  prepare(settings) {
    this.player.analyser; // loads the worklet
    this.#connected(settings).catch(() => {}); // said when somebody wants to speak
  }

  /**
   * Begin to say something; to be called where the browser lets sound begin, in a click or a key
   * press. What was being said is interrupted. The speech takes text at once.
   *
   * @param {Settings} settings
   * @returns {Speech}
   */
  speak(settings) {
    const before = this.interrupt();
    const speech = new Speech(settings);
    this.current = speech;
    speech.addEventListener("over", () => this.#learn(speech));
    const unlocked = this.#unlock(speech);
    this.#start(speech, before, unlocked).catch(async (error) => {
      speech.fail(await this.#server.explained(error), error);
    });
    this.dispatchEvent(new CustomEvent("speech", { detail: speech }));
    return speech;
  }

  /** @param {Speech} speech */
  async #unlock(speech) {
    const late = setTimeout(() => (speech.locked = true), UNLOCK_MS);
    try {
      await this.player.unlock();
    } finally {
      clearTimeout(late);
      speech.locked = false;
    }
  }

  /** Stop. Resolves when the server has said what was heard. */
  async interrupt() {
    const speech = this.current;
    if (!speech || speech.over || speech.state === "interrupted") return;
    speech.interrupting();
    try {
      speech.interrupted(await this.player.bargeIn());
    } catch (error) {
      speech.fail(await this.#server.explained(error));
    }
  }

  /** Stop, and leave the server. */
  async close() {
    await this.interrupt();
    (await this.#session?.catch(() => null))?.close();
    await this.player.close();
  }

  /** The loudest sample of the last moment, 0 to 1. */
  peak() {
    const analyser = this.player.analyser;
    if (!analyser || !this.speaking) return 0;
    analyser.getFloatTimeDomainData(this.#scope);
    return this.#scope.reduce((peak, value) => Math.max(peak, Math.abs(value)), 0);
  }

  /** @param {Speech} speech @param {Promise<unknown>} before @param {Promise<unknown>} unlocked */
  async #start(speech, before, unlocked) {
    const [session] = await Promise.all([this.#connected(speech.settings), unlocked, before]);
    if (speech.over || speech.state === "interrupted") return;
    await speech.listen(this.player.play(speech.joined(session.turn())));
  }

  /**
   * One after the other: who asks meanwhile gets what they asked for, not what was on its way.
   *
   * @param {Settings} settings @returns {Promise<RealtimeTTS>}
   */
  #connected(settings) {
    const connected = this.#connecting.then(() => this.#connect(settings));
    this.#connecting = connected.catch(() => {}); // said to who asked
    return connected;
  }

  /** @param {Settings} settings */
  async #connect(settings) {
    const wanted = JSON.stringify([settings, this.#server.key]);
    const open = await this.#session?.catch(() => null);
    if (open?.connected && this.#inForce === wanted) return open;
    if (open?.connected) await open.configure(settings);
    else {
      open?.close(); // it would go on trying by itself
      this.#session = this.#server.connect({ ...settings }, (connected) => {
        if (this.current) this.current.lost = !connected;
      });
    }
    this.#inForce = wanted;
    return /** @type {Promise<RealtimeTTS>} */ (this.#session);
  }

  /** @param {Speech} speech */
  #learn(speech) {
    const expected = expectedSeconds(speech.text);
    if (speech.state === "done" && speech.total && expected > 1) {
      this.#paces.set(speech.settings.voice ?? "", speech.total / expected);
    }
  }
}
