/** Several voices at once, a row each: every row is a session and a player of its own. */

import { SAMPLE_RATE } from "/client/index.js";
import { Player } from "/client/player.js";
import { byId, element, fill, say } from "./dom.js";
import { paced } from "./pieces.js";
import { Trouble } from "./server.js";
import { Speaker } from "./speaker.js";
import { slider } from "./streaming.js";
import { colours, draw } from "./timeline.js";
import { Transcript } from "./transcript.js";

/** @import { Server } from "./server.js" */

const TEXTS = [
  "The tide is coming in. By four the causeway will be under water, and the island is an island again.",
  "Your parcel left the depot this morning. The driver has eleven stops before yours, so expect it at two.",
  "Take the second road on the left, go past the mill, and stop where the road meets the river.",
  "I looked at the figures again. Sales are up by a tenth, but most of that came from one customer.",
  "Fold the eggs in slowly. If the batter looks too thick, a spoon of warm milk will loosen it.",
  "There is a storm over the hills tonight. Keep the windows shut, and leave the lamp on for the cat.",
  "The museum opens at ten. On Thursdays it stays open until nine, and the last hour costs nothing.",
  "Yes, the meeting moved. It is in the small room now, at half past three, and Tom will join late.",
];

/** A player's way to the loudspeaker, with a tap. */
class Tap extends AudioContext {
  /** @type {GainNode | undefined} */
  #gain;

  /** @override @returns {AudioDestinationNode} */
  get destination() {
    if (!this.#gain) {
      this.#gain = new GainNode(this);
      this.#gain.connect(super.destination);
    }
    return /** @type {AudioDestinationNode} */ (/** @type {AudioNode} */ (this.#gain));
  }

  /** @param {boolean} open */
  turn(open) {
    this.destination; // so that there is one
    this.#gain?.gain.setTargetAtTime(open ? 1 : 0, this.currentTime, 0.01);
  }
}

class Row {
  /** @param {Server} server @param {number} number @param {string[]} voices @param {string} voice */
  constructor(server, number, voices, voice) {
    this.number = number;
    this.tap = new Tap({ sampleRate: SAMPLE_RATE });
    this.speaker = new Speaker(server, new Player({ context: this.tap }));
    this.voice = element("select", { "aria-label": `Voice of row ${number + 1}` });
    fill(this.voice, voices, voice);
    this.canvas = element("canvas", { role: "img", "aria-label": "Lead and packets of this voice" });
    this.says = element("p", { class: "says" }, "ready");
    const named = { "aria-label": `Listen to row ${number + 1}`, title: "Listen" };
    this.sound = element("button", { type: "button", "aria-pressed": "true", ...named }, "♪");
    this.sound.addEventListener("click", () => this.listen(!this.listened));
    const chart = element("div", { class: "chart" }, this.canvas);
    const line = element("p", { class: "transcript line" }, this.#text);
    this.transcript = new Transcript(line);
    this.item = element("li", {}, this.voice, chart, this.says, this.sound, line);
  }

  get #text() {
    return TEXTS[this.number % TEXTS.length] ?? "";
  }

  get listened() {
    return this.sound.getAttribute("aria-pressed") === "true";
  }

  /** @param {boolean} on */
  listen(on) {
    this.sound.setAttribute("aria-pressed", String(on));
    this.tap.turn(on);
  }

  /** @param {import("./speaker.js").Settings} settings @param {boolean} stalls */
  speak(settings, stalls) {
    const text = this.#text;
    const voice = this.voice.value;
    const speech = this.speaker.speak({ ...settings, voice: voice || settings.voice });
    speech.coming = text;
    const options = { tokensPerSecond: () => 30, stalls: () => stalls, signal: speech.stop.signal };
    void speech.feed(paced(text, options));
    return speech;
  }

  /** @param {number} now @param {import("./timeline.js").Colours} colour */
  show(now, colour) {
    const speech = this.speaker.current;
    speech?.sample(now, 0);
    draw(this.canvas, speech?.trace ?? null, speech?.endedAt ?? now, colour, { compact: true });
    say(this.says, speech ? words(speech) : "ready");
    if (speech) this.transcript.show(speech, this.speaker.pace(speech.settings.voice));
  }
}

/** @param {import("./speech.js").Speech} speech */
function words(speech) {
  const { trace, state, lead } = speech;
  if (speech.trouble) return "refused,\nsee above";
  const first = trace.ttfaMs === null ? "waiting" : `TTFA ${Math.round(trace.ttfaMs)} ms`;
  const gaps = trace.underruns.length;
  const then = speech.over ? state : state === "held" ? "held" : `lead ${lead.toFixed(1)} s`;
  return `${first}\n${then}${gaps ? `, ${gaps} underrun${gaps > 1 ? "s" : ""}` : ""}`;
}

/** @param {Error | null | undefined} trouble */
function refused(trouble) {
  return trouble instanceof Trouble && trouble.waitMs > 0;
}

export class Several {
  /** @type {Row[]} */
  rows = [];
  #server;
  #list = byId("several");
  #settings;
  /** @type {string[]} */
  #voices = [];
  #known = false;
  #open = false;
  #count;
  #colours = colours();
  #failed;

  /**
   * @param {Server} server
   * @param {() => import("./speaker.js").Settings} settings
   * @param {(trouble: Error) => void} failed
   */
  constructor(server, settings, failed) {
    this.#server = server;
    this.#settings = settings;
    this.#failed = failed;
    this.#count = slider("rows", (value) => `${value} at once`);
    byId("rows").addEventListener("input", () => this.#fit());
  }

  /** @param {string[]} voices */
  voices(voices) {
    this.#known = true;
    this.#voices = voices;
    for (const row of this.rows) fill(row.voice, voices, this.#voice(row.number));
    this.#fit();
  }

  /** Make the rows, now that they are looked at: each has a way of its own to the loudspeaker. */
  open() {
    this.#open = true;
    this.#fit();
  }

  /** @param {number} number of a row */
  #voice(number) {
    return this.#voices[number % (this.#voices.length || 1)] ?? "";
  }

  recolour() {
    this.#colours = colours();
  }

  speak() {
    this.#speak(this.rows);
  }

  /** Speak the rows that a full server refused. */
  retry() {
    this.#speak(this.rows.filter((row) => refused(row.speaker.current?.trouble)));
  }

  /** @param {Row[]} rows */
  #speak(rows) {
    const stalls = /** @type {HTMLInputElement} */ (byId("several-stalls")).checked;
    const settings = this.#settings();
    let told = false;
    for (const row of rows) {
      const speech = row.speak(settings, stalls && row.number % 2 === 1);
      speech.addEventListener("over", () => {
        if (speech.trouble && !told) this.#failed(speech.trouble);
        told ||= speech.trouble !== null;
      });
    }
  }

  get speaking() {
    return this.rows.some((row) => row.speaker.speaking);
  }

  async interrupt() {
    await Promise.all(this.rows.map((row) => row.speaker.interrupt()));
  }

  /** @param {number} now */
  show(now) {
    for (const row of this.rows) row.show(now, this.#colours);
  }

  #fit() {
    while (this.rows.length > this.#count()) {
      const row = this.rows.pop();
      void row?.speaker.close();
      row?.item.remove();
    }
    while (this.rows.length < this.#count() && this.#known && this.#open) {
      const number = this.rows.length;
      const row = new Row(this.#server, number, this.#voices, this.#voice(number));
      this.rows.push(row);
      this.#list.append(row.item);
    }
  }
}
