/** Draws a trace: sound and lead of the last twelve seconds, packets, held periods, underruns. */

/** @import { Trace } from "./trace.js" */

const WINDOW_MS = 12_000;
const LEAST_LEAD = 1; // seconds that the lane has room for, whatever is there
const LEAST_PEAK = 0.1;
const FONT = "11px system-ui, sans-serif";

/** @typedef {Record<"soft" | "line" | "accent" | "wash" | "held" | "wrong", string>} Colours */

/** @returns {Colours} the theme's */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    soft: named("soft"),
    line: named("line"),
    accent: named("accent"),
    wash: named("accent-wash"),
    held: named("held"),
    wrong: named("wrong"),
  };
}

/** @typedef {{top: number, bottom: number}} Lane */
/** @typedef {{sound: Lane | null, lead: Lane, packets: Lane}} Lanes */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Trace | null} trace
 * @param {number} now right edge
 * @param {Colours} colour
 * @param {{compact?: boolean}} [options] compact: lead and packets, without words
 */
export function draw(canvas, trace, now, colour, { compact = false } = {}) {
  const pen = prepared(canvas);
  if (pen) new Picture(pen, canvas, now, colour, compact).draw(trace);
}

/** A pen on an empty canvas, in CSS pixels. @param {HTMLCanvasElement} canvas */
function prepared(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext("2d");
  if (!pen || width === 0) return null;
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

class Picture {
  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {HTMLCanvasElement} canvas
   * @param {number} now
   * @param {Colours} colour
   * @param {boolean} compact
   */
  constructor(pen, canvas, now, colour, compact) {
    this.pen = pen;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    this.now = now;
    this.colour = colour;
    this.compact = compact;
    this.lanes = compact ? compactLanes(this.height) : fullLanes(this.height);
    this.topLead = LEAST_LEAD;
  }

  /** @param {Trace | null} trace */
  draw(trace) {
    this.topLead = 1.1 * largest(trace, ({ lead }) => lead, LEAST_LEAD);
    if (trace) this.#held(trace);
    this.#grid();
    if (trace) {
      if (this.lanes.sound) this.#sound(trace, this.lanes.sound);
      this.#lead(trace);
      this.#packets(trace);
      this.#underruns(trace);
    }
    if (!this.compact) this.#labels();
  }

  /** @param {number} at */
  #x(at) {
    return this.width - ((this.now - at) / WINDOW_MS) * this.width;
  }

  /** @param {number} lead */
  #leadY(lead) {
    const { top, bottom } = this.lanes.lead;
    return bottom - Math.min(1, Math.max(0, lead) / this.topLead) * (bottom - top);
  }

  /** Whole seconds of lead that have a line. */
  get #mark() {
    return Math.floor(this.topLead);
  }

  #grid() {
    const { sound, lead } = this.lanes;
    this.pen.fillStyle = this.colour.line;
    this.pen.fillRect(0, lead.bottom, this.width, 1);
    if (!this.compact) this.pen.fillRect(0, this.#leadY(this.#mark), this.width, 1);
    if (sound) this.pen.fillRect(0, middle(sound), this.width, 1);
  }

  #labels() {
    const { pen, width, lanes } = this;
    pen.font = FONT;
    pen.fillStyle = this.colour.soft;
    pen.textAlign = "left";
    if (lanes.sound) pen.fillText("sound", 0, lanes.sound.top - 5);
    pen.fillText("lead", 0, lanes.lead.top - 5);
    pen.fillText("packets", 0, lanes.packets.top - 4);
    pen.textAlign = "right";
    pen.fillText(`${this.#mark} s`, width, this.#leadY(this.#mark) - 4);
    pen.fillText("now", width, lanes.packets.top - 4);
  }

  /** @param {Trace} trace */
  #held(trace) {
    const { pen } = this;
    pen.font = FONT;
    pen.textAlign = "left";
    for (const { from, to } of trace.held) {
      const left = this.#x(from);
      const wide = this.#x(to ?? this.now) - left;
      pen.fillStyle = this.colour.held;
      pen.fillRect(left, 0, wide, this.height);
      pen.fillStyle = this.colour.soft;
      if (!this.compact && wide > 34) pen.fillText("held", Math.max(left, 42) + 5, 11);
    }
  }

  /** @param {Trace} trace @param {Lane} lane */
  #sound(trace, lane) {
    const half = (lane.bottom - lane.top) / 2;
    const most = largest(trace, ({ peak }) => peak, LEAST_PEAK);
    const line = trace.samples.map(({ at, peak }) => [this.#x(at), (peak / most) * half]);
    this.pen.fillStyle = this.colour.accent;
    this.#between(
      line.map(([x = 0, y = 0]) => [x, middle(lane) - y]),
      line.map(([x = 0, y = 0]) => [x, middle(lane) + y]),
    );
  }

  /** @param {Trace} trace */
  #lead(trace) {
    const line = trace.samples.map(({ at, lead }) => [this.#x(at), this.#leadY(lead)]);
    this.pen.fillStyle = this.colour.wash;
    this.#between(
      line,
      line.map(([x = 0]) => [x, this.lanes.lead.bottom]),
    );
    this.pen.strokeStyle = this.colour.accent;
    this.pen.lineWidth = 1.5;
    this.pen.beginPath();
    for (const [x = 0, y = 0] of line) this.pen.lineTo(x, y);
    this.pen.stroke();
  }

  /** @param {Trace} trace */
  #packets(trace) {
    const { top, bottom } = this.lanes.packets;
    this.pen.fillStyle = this.colour.accent;
    for (const at of trace.packets) this.pen.fillRect(this.#x(at) - 1, top, 1.5, bottom - top);
  }

  /** @param {Trace} trace */
  #underruns(trace) {
    this.pen.fillStyle = this.colour.wrong;
    for (const at of trace.underruns) this.pen.fillRect(this.#x(at) - 1, 0, 2, this.height);
  }

  /** Fill the area between two lines. @param {number[][]} over @param {number[][]} under */
  #between(over, under) {
    this.pen.beginPath();
    for (const [x = 0, y = 0] of [...over, ...under.reverse()]) this.pen.lineTo(x, y);
    this.pen.fill();
  }
}

/**
 * The largest of the samples that the picture shows.
 *
 * @param {Trace | null} trace
 * @param {(sample: import("./trace.js").Sample) => number} of
 * @param {number} least
 */
function largest(trace, of, least) {
  return (trace?.samples ?? []).reduce((most, sample) => Math.max(most, of(sample)), least);
}

/** @param {number} height @returns {Lanes} */
function fullLanes(height) {
  return {
    sound: { top: 16, bottom: height * 0.42 },
    lead: { top: height * 0.42 + 20, bottom: height - 30 },
    packets: { top: height - 12, bottom: height },
  };
}

/** @param {number} height @returns {Lanes} */
function compactLanes(height) {
  return {
    sound: null,
    lead: { top: 2, bottom: height - 12 },
    packets: { top: height - 8, bottom: height },
  };
}

/** @param {Lane} lane */
const middle = ({ top, bottom }) => (top + bottom) / 2;
