/** Draws a trace: sound and lead of the last twelve seconds, packets, held periods, underruns. */

/** @import { Trace } from "./trace.js" */

const WINDOW_MS = 12_000;
const TOP_LEAD = 3.4; // seconds: a little more than the server goes ahead
const FONT = "11px system-ui, sans-serif";

/** @typedef {Record<"ink" | "soft" | "line" | "accent" | "wash" | "held" | "wrong", string>} Colours */

/** @returns {Colours} the theme's */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: named("ink"),
    soft: named("soft"),
    line: named("line"),
    accent: named("accent"),
    wash: named("accent-wash"),
    held: named("held"),
    wrong: named("wrong"),
  };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Trace | null} trace
 * @param {number} now right edge
 * @param {Colours} colour
 * @param {{compact?: boolean}} [options] compact: lead and packets, without words
 */
export function draw(canvas, trace, now, colour, { compact = false } = {}) {
  const frame = prepared(canvas);
  if (!frame) return;
  const { pen, width, height } = frame;
  const x = (/** @type {number} */ at) => width - ((now - at) / WINDOW_MS) * width;
  const lanes = compact ? compactLanes(height) : fullLanes(height);
  if (trace) drawHeld(pen, trace, x, height, now, colour, compact);
  grid(pen, lanes, width, colour, compact);
  if (trace) {
    if (lanes.sound) drawSound(pen, trace, x, lanes.sound, colour);
    drawLead(pen, trace, x, lanes.lead, colour);
    drawPackets(pen, trace, x, lanes.packets, colour);
    drawGaps(pen, trace, x, height, colour);
  }
  if (!compact) labels(pen, lanes, width, colour);
}

/** @typedef {{top: number, bottom: number}} Lane */
/** @typedef {{sound: Lane | null, lead: Lane, packets: Lane}} Lanes */

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

/** @param {HTMLCanvasElement} canvas */
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
  return { pen, width, height };
}

/** @param {CanvasRenderingContext2D} pen @param {Lanes} lanes @param {number} width @param {Colours} colour @param {boolean} compact */
function grid(pen, lanes, width, colour, compact) {
  pen.fillStyle = colour.line;
  pen.fillRect(0, lanes.lead.bottom, width, 1);
  if (!compact) pen.fillRect(0, leadY(lanes.lead, 3), width, 1);
  if (lanes.sound) pen.fillRect(0, middle(lanes.sound), width, 1);
}

/** @param {CanvasRenderingContext2D} pen @param {Lanes} lanes @param {number} width @param {Colours} colour */
function labels(pen, lanes, width, colour) {
  pen.font = FONT;
  pen.fillStyle = colour.soft;
  pen.textBaseline = "alphabetic";
  pen.textAlign = "left";
  if (lanes.sound) pen.fillText("sound", 0, lanes.sound.top - 5);
  pen.fillText("lead", 0, lanes.lead.top - 5);
  pen.fillText("packets", 0, lanes.packets.top - 4);
  pen.textAlign = "right";
  pen.fillText("3 s", width, leadY(lanes.lead, 3) - 4);
  pen.fillText("now", width, lanes.packets.top - 4);
}

/** @param {CanvasRenderingContext2D} pen @param {Trace} trace @param {(at: number) => number} x @param {number} height @param {number} now @param {Colours} colour @param {boolean} compact */
function drawHeld(pen, trace, x, height, now, colour, compact) {
  for (const { from, to } of trace.held) {
    const left = x(from);
    const wide = x(to ?? now) - left;
    if (left + wide < 0) continue;
    pen.fillStyle = colour.held;
    pen.fillRect(left, 0, wide, height);
    if (compact || wide < 34) continue;
    pen.fillStyle = colour.soft;
    pen.font = FONT;
    pen.textAlign = "left";
    pen.fillText("held", Math.max(left, 42) + 5, 11);
  }
}

/** @param {CanvasRenderingContext2D} pen @param {Trace} trace @param {(at: number) => number} x @param {Lane} lane @param {Colours} colour */
function drawSound(pen, trace, x, lane, colour) {
  const centre = middle(lane);
  const half = (lane.bottom - lane.top) / 2;
  const points = trace.samples.map(({ at, peak }) => ({ x: x(at), y: Math.min(1, peak * 1.15) * half }));
  pen.fillStyle = colour.accent;
  area(
    pen,
    points.map((point) => ({ x: point.x, y: centre - point.y })),
    points.map((point) => ({ x: point.x, y: centre + point.y })),
  );
}

/** @param {CanvasRenderingContext2D} pen @param {Trace} trace @param {(at: number) => number} x @param {Lane} lane @param {Colours} colour */
function drawLead(pen, trace, x, lane, colour) {
  const line = trace.samples.map(({ at, lead }) => ({ x: x(at), y: leadY(lane, lead) }));
  pen.fillStyle = colour.wash;
  area(
    pen,
    line,
    line.map((point) => ({ x: point.x, y: lane.bottom })),
  );
  pen.strokeStyle = colour.accent;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const point of line) pen.lineTo(point.x, point.y);
  pen.stroke();
}

/** @param {CanvasRenderingContext2D} pen @param {Trace} trace @param {(at: number) => number} x @param {Lane} lane @param {Colours} colour */
function drawPackets(pen, trace, x, lane, colour) {
  pen.fillStyle = colour.accent;
  for (const at of trace.packets) pen.fillRect(x(at) - 1, lane.top, 1.5, lane.bottom - lane.top);
}

/** @param {CanvasRenderingContext2D} pen @param {Trace} trace @param {(at: number) => number} x @param {number} height @param {Colours} colour */
function drawGaps(pen, trace, x, height, colour) {
  pen.fillStyle = colour.wrong;
  for (const at of trace.underruns) pen.fillRect(x(at) - 1, 0, 2, height);
}

/** @param {CanvasRenderingContext2D} pen @param {{x: number, y: number}[]} over @param {{x: number, y: number}[]} under */
function area(pen, over, under) {
  pen.beginPath();
  for (const point of over) pen.lineTo(point.x, point.y);
  for (const point of under.reverse()) pen.lineTo(point.x, point.y);
  pen.fill();
}

/** @param {Lane} lane @param {number} lead */
function leadY(lane, lead) {
  const share = Math.min(1, Math.max(0, lead) / TOP_LEAD);
  return lane.bottom - share * (lane.bottom - lane.top);
}

/** @param {Lane} lane */
const middle = (lane) => (lane.top + lane.bottom) / 2;
