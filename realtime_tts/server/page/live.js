/** The panel that shows what goes on in one speech. */

import { byId, say } from "./dom.js";
import { colours, draw } from "./timeline.js";
import { Transcript } from "./transcript.js";

/** @import { Speaker } from "./speaker.js" */
/** @import { Speech } from "./speech.js" */
/** @import { Status } from "./status.js" */

export class Live {
  #speaker;
  #status;
  #transcript = new Transcript(byId("transcript"));
  #canvas = /** @type {HTMLCanvasElement} */ (byId("timeline"));
  #hero = byId("hero");
  #announce = byId("announce");
  #figures = {
    ttfa: byId("f-ttfa"),
    lead: byId("f-lead"),
    packets: byId("f-packets"),
    held: byId("f-held"),
    underruns: byId("f-underruns"),
    ramp: byId("f-ramp"),
    layout: byId("f-layout"),
    pacing: byId("f-pacing"),
  };
  #colours = colours();
  /** @type {Speech | null} */
  #announced = null;

  /** @param {Speaker} speaker @param {Status} status */
  constructor(speaker, status) {
    this.#speaker = speaker;
    this.#status = status;
  }

  recolour() {
    this.#colours = colours();
  }

  /**
   * Once for every picture.
   *
   * @param {number} now
   * @param {{speaking: boolean} | null} several others that are on the stage
   */
  show(now, several) {
    if (several) {
      this.#hero.hidden = true;
      return this.#status.show(now, several.speaking ? "speaking" : "", "");
    }
    const speech = this.#speaker.current;
    speech?.sample(now, this.#speaker.peak());
    this.#status.show(now, speech?.state ?? "", speech?.over ? summary(speech) : "");
    if (speech) this.#say(speech);
    this.#transcript.show(speech, this.#speaker.pace(speech?.settings.voice ?? null));
    this.#numbers(speech, now);
    draw(this.#canvas, speech?.trace ?? null, speech?.endedAt ?? now, this.#colours);
  }

  /** @param {Speech | null} speech @param {number} now */
  #numbers(speech, now) {
    const { ttfa, lead, packets, held, underruns } = this.#figures;
    const trace = speech?.trace;
    this.#hero.hidden = trace?.ttfaMs == null;
    if (trace?.ttfaMs != null) say(ttfa, `${Math.round(trace.ttfaMs)} ms`);
    say(lead, trace ? `${(speech?.lead ?? 0).toFixed(1)} s` : "–");
    say(packets, trace ? String(trace.packetCount) : "–");
    say(held, trace ? `${trace.heldSeconds(speech?.endedAt ?? now).toFixed(1)} s` : "–");
    const gaps = trace?.underruns.length ?? 0;
    say(underruns, trace ? String(gaps) : "–");
    underruns.classList.toggle("wrong", gaps > 0);
    this.#ways(speech);
  }

  /** How the text is taken, and in which pieces sound is made. @param {Speech | null} speech */
  #ways(speech) {
    const { ramp, layout, pacing } = this.#figures;
    const pieces = speech?.trace.ramp ?? [];
    say(ramp, pieces.length ? pieces.map((seconds) => Math.round(seconds * 1000)).join(" · ") : "–");
    say(layout, speech?.layout.replace("_", " ") || "–");
    say(pacing, speech ? (speech.settings.pacing ?? "auto") : "–");
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

const NOTHING = ": the text had nothing to speak";

/** @param {Speech} speech */
function summary(speech) {
  if (speech.state === "interrupted") return ` after ${speech.heard.toFixed(1)} s`;
  if (speech.state !== "done") return "";
  const { seconds } = speech.trace;
  return seconds > 0 ? `: ${seconds.toFixed(1)} s of speech` : NOTHING;
}

/** @param {Speech} speech */
function spokenSummary(speech) {
  const { report } = speech;
  if (!report && speech.state !== "done") return "";
  if (!report) return speech.trace.seconds > 0 ? "Done." : `Done${NOTHING}.`;
  return `Interrupted. Heard: ${told(report.textSpoken)} Not heard: ${told(report.textRemaining)}`;
}

/** @param {string} text */
const told = (text) => (text.trim() || "nothing").replace(/[\p{L}\p{N}]$/u, "$&.");
