import { Scheduled } from "./player-scheduled.js";
import { worklet } from "./player-worklet.js";
import { ClientError, SAMPLE_RATE, deferred } from "./protocol.js";

/** @import * as api from "../types/api.js" */
/** @import * as internal from "../types/internal.js" */
/** @import * as player from "../types/player.js" */

const REPORT_SECONDS = 0.25;
const CLEAR_MS = 100;

class Playback {
  /** @type {internal.Deferred<api.TurnResult>} */
  #done = deferred();
  /** @type {internal.WorkletReport} */
  #at = { id: 0, state: "waiting", played: 0, underruns: 0, buffered: 0, time: 0 };
  #reportedAt = 0;
  #heard = 0;
  #player;
  /** @type {any} */
  cleared;
  /** @type {any} once it has begun */
  port;

  /** @param {Player} player @param {api.Turn} turn */
  constructor(player, turn) {
    this.#player = player;
    this.turn = turn;
  }

  get done() {
    return this.#done.promise;
  }

  /** @returns {player.PlaybackStats} */
  stats() {
    const { state, played, underruns, buffered, time } = this.#at;
    const { currentTime, outputLatency = 0, baseLatency = 0 } = this.#player.context;
    const since = currentTime - time;
    const before = played / SAMPLE_RATE;
    const moved = state === "playing" ? Math.min(since, buffered / SAMPLE_RATE) : 0;
    const playedSeconds = before + moved;
    const heard = before + since - outputLatency - baseLatency;
    this.#heard = Math.max(this.#heard, Math.min(heard, playedSeconds));
    return {
      state,
      underruns,
      playedSeconds,
      heardSeconds: this.#heard,
      leadSeconds: Math.max(0, this.turn.samplesReceived / SAMPLE_RATE - playedSeconds),
      bufferedSeconds: buffered / SAMPLE_RATE - moved,
    };
  }

  /** @param {internal.WorkletReport} report */
  update(report) {
    const before = this.#at;
    this.#at = report;
    const { state, played, underruns, time } = report;
    if (underruns > before.underruns) this.#player.emit("underrun", { playback: this, underruns });
    if (state !== before.state) this.#player.emit("state", { playback: this, state });
    else if (time < this.#reportedAt + REPORT_SECONDS) return;
    this.#reportedAt = time;
    this.turn.played({ playedSamples: played });
  }

  /** @param {number} [played] @param {Promise<never>} [failed] */
  finish(played = this.#at.played, failed) {
    this.update({ ...this.#at, played, state: "done", buffered: 0 });
    this.#done.resolve(failed ?? this.turn.done);
  }
}

export class Player extends EventTarget {
  /** @type {Map<number, Playback>} */
  #playbacks = new Map();
  /** @type {AudioContext | undefined} */
  #context;
  /** @type {Promise<AudioWorkletNode | Scheduled> | undefined} */
  #node;
  /** @type {AnalyserNode | undefined} */
  #analyser;
  #ids = 0;
  #unlocked = false;
  #closing = new AbortController();
  #workletUrl;
  #allow = () => {
    // What the page suspended later stays so.
    if (!this.#unlocked || this.#context?.state === "interrupted") this.unlock().catch(() => {}); // play() rejects
  };

  /** @param {player.PlayerOptions} [options] */
  constructor({ context, workletUrl } = {}) {
    super();
    this.#context = context;
    this.#workletUrl = workletUrl;
    const { signal } = this.#closing;
    for (const gesture of ["click", "keydown", "touchend"]) {
      addEventListener(gesture, this.#allow, { capture: true, signal });
    }
    document.addEventListener("visibilitychange", () => this.#wake(), { signal });
  }

  get context() {
    return (this.#context ??= new AudioContext({ sampleRate: SAMPLE_RATE }));
  }

  get analyser() {
    if (!this.#analyser) this.#load().catch(() => {}); // play() rejects
    return this.#output();
  }

  async unlock() {
    await Promise.all([this.context.resume(), this.#load()]); // still in the gesture
    this.#unlocked = true;
  }

  /** @param {api.Turn} turn */
  play(turn) {
    const id = ++this.#ids;
    const playback = new Playback(this, turn);
    this.#playbacks.set(id, playback);
    this.#pump(id, playback).catch((error) => {
      turn.interrupt();
      this.#finish(id, 0, Promise.reject(error));
    });
    return playback;
  }

  async bargeIn() {
    const playbacks = [...this.#playbacks].reverse(); // lest one that waits begins
    const reports = playbacks.map(async ([id, { turn }]) =>
      turn.interrupt({ playedSamples: (await this.#clear(id)) ?? 0 }),
    );
    return (await Promise.all(reports)).at(-1) ?? null;
  }

  async close() {
    this.#closing.abort();
    await this.bargeIn();
    await this.#context?.close().catch(() => {}); // it was closed
  }

  /** @param {string} type @param {object} detail */
  emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** After a call, iOS leaves it to the page to go on. */
  #wake() {
    const state = this.#context?.state;
    if (state === "closed") this.close(); // by the page
    if (state === "interrupted" && document.visibilityState === "visible") this.#allow();
  }

  async #load() {
    if (this.#closing.signal.aborted || this.#context?.state === "closed") {
      throw new ClientError("the player is closed");
    }
    return (this.#node ??= this.#make().catch((error) => {
      this.#node = undefined;
      throw error;
    }));
  }

  async #make() {
    const { context } = this;
    const node = context.audioWorklet ? await this.#worklet() : new Scheduled(context);
    node.port.onmessage = (/** @type {any} */ { data }) => this.#reported(data);
    node.connect(this.#output());
    const { signal } = this.#closing;
    context.addEventListener("statechange", () => this.#wake(), { signal });
    const failed = () => {
      this.#unlocked = false;
      setTimeout(this.#allow, 500); // once it is suspended
    };
    context.addEventListener("error", failed, { signal });
    return node;
  }

  /** All sound passes it on its way to the loudspeaker. */
  #output() {
    if (!this.#analyser) {
      this.#analyser = this.context.createAnalyser();
      this.#analyser.connect(this.context.destination);
    }
    return this.#analyser;
  }

  async #worklet() {
    const { context } = this;
    const own = URL.createObjectURL(new Blob([`(${worklet})()`], { type: "text/javascript" }));
    const given = this.#workletUrl && `${this.#workletUrl}#${Date.now()}`; // failures are cached
    await context.audioWorklet.addModule(given ?? own).finally(() => URL.revokeObjectURL(own));
    return new AudioWorkletNode(context, "realtime-tts-player", { numberOfInputs: 0 });
  }

  /** @param {number} id @param {Playback} playback */
  async #pump(id, playback) {
    const { port } = await this.#load();
    if (!this.#playbacks.has(id)) return; // cleared meanwhile
    playback.port = port;
    port.postMessage({ id, begin: true });
    const { turn } = playback;
    try {
      for await (const { buffer, length } of turn) {
        this.emit("packet", { playback, samples: length / 2 });
        port.postMessage({ id, samples: buffer }, [buffer]);
      }
      const { reason } = await turn.done;
      if (reason === "interrupted") await this.#clear(id); // not by bargeIn()
    } catch {
      // Plays what was received; `done` rejects.
    }
    port.postMessage({ id, end: true });
  }

  /** Returns the samples played. @param {number} id */
  async #clear(id) {
    const playback = this.#playbacks.get(id);
    const played =
      playback?.port &&
      (await new Promise((resolve) => {
        playback.cleared = resolve;
        playback.port.postMessage({ id, clear: true });
        // A suspended context may not answer.
        setTimeout(() => resolve(playback.stats().playedSeconds * SAMPLE_RATE), CLEAR_MS);
      }));
    this.#finish(id, played);
    return played;
  }

  /** @param {internal.WorkletReport} report */
  #reported(report) {
    const playback = this.#playbacks.get(report.id);
    if (report.cleared !== undefined) return playback?.cleared(report.cleared);
    playback?.update(report);
    if (report.state === "done") this.#finish(report.id);
  }

  /** @param {number} id @param {number} [played] @param {Promise<never>} [failed] */
  #finish(id, played, failed) {
    this.#playbacks.get(id)?.finish(played, failed);
    this.#playbacks.delete(id);
  }
}
