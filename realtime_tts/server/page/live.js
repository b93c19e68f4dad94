/** The panel that shows what goes on in one speech. */

import { byId, say } from "./dom.js";
import { colours, draw } from "./timeline.js";
import { Transcript } from "./transcript.js";

/** @import { Speaker } from "./speaker.js" */
/** @import { Speech } from "./speech.js" */

const WORDS = {
  idle: "Ready",
  waiting: "Waiting for the first sound",
  speaking: "Speaking",
  held: "Held: waiting for text",
  interrupted: "Interrupted",
  done: "Done",
  failed: "Stopped by an error",
};

export class Live {
  #speaker;
  #transcript = new Transcript(byId("transcript"));
  #canvas = /** @type {HTMLCanvasElement} */ (byId("timeline"));
  #state = byId("state");
  #announce = byId("announce");
  #result = byId("result");
  #figures = {
    ttfa: byId("f-ttfa"),
    lead: byId("f-lead"),
    packets: byId("f-packets"),
    held: byId("f-held"),
    underruns: byId("f-underruns"),
  };
  #colours = colours();
  /** @type {Speech | null} */
  #announced = null;

  /** @param {Speaker} speaker */
  constructor(speaker) {
    this.#speaker = speaker;
  }

  recolour() {
    this.#colours = colours();
  }

  /** Once for every picture. @param {number} now */
  show(now) {
    const speech = this.#speaker.current;
    speech?.sample(now, this.#speaker.peak());
    const state = speech?.state ?? "idle";
    this.#state.dataset["state"] = state;
    say(this.#state, WORDS[state]);
    say(this.#result, speech?.over ? summary(speech) : "");
    if (speech) this.#say(speech);
    this.#transcript.show(speech, speech ? this.#speaker.pace(speech.settings.voice) : 1);
    this.#numbers(speech, now);
    draw(this.#canvas, speech?.trace ?? null, speech?.endedAt ?? now, this.#colours);
  }

  /** @param {Speech | null} speech @param {number} now */
  #numbers(speech, now) {
    const { ttfa, lead, packets, held, underruns } = this.#figures;
    const trace = speech?.trace;
    say(ttfa, trace?.ttfaMs == null ? "–" : `${Math.round(trace.ttfaMs)} ms`);
    say(lead, trace ? `${(speech?.lead ?? 0).toFixed(1)} s` : "–");
    say(packets, trace ? String(trace.packetCount) : "–");
    say(held, trace ? `${trace.heldSeconds(speech?.endedAt ?? now).toFixed(1)} s` : "–");
    const gaps = trace?.underruns.length ?? 0;
    say(underruns, trace ? String(gaps) : "–");
    underruns.classList.toggle("wrong", gaps > 0);
  }

  /**
   * For who listens to the page: how it ended, once; not every time it is held.
   *
   * @param {Speech} speech
   */
  #say(speech) {
    if (!speech.over) return say(this.#announce, "");
    if (this.#announced === speech) return;
    this.#announced = speech;
    say(this.#announce, spokenSummary(speech));
  }
}

/** @param {Speech} speech */
function summary(speech) {
  const seconds = `${speech.trace.seconds.toFixed(1)} s of speech`;
  if (speech.state === "interrupted") return `after ${speech.heard.toFixed(1)} s`;
  return speech.state === "done" ? seconds : "";
}

/** @param {Speech} speech */
function spokenSummary(speech) {
  const { report } = speech;
  if (!report) return speech.state === "done" ? "Done." : "";
  const heard = report.textSpoken.trim() || "nothing";
  return `Interrupted. Heard: ${heard}. Not heard: ${report.textRemaining.trim() || "nothing"}.`;
}
