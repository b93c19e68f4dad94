/** The microphone as an interrupt: only its loudness is looked at, and only here. */

import { byId } from "./dom.js";
import { SpeechGate, decibels } from "./level.js";
import { microphoneStream, whileChecked } from "./recording.js";
import { slider } from "./streaming.js";

const LOOK_MS = 30;

/**
 * @param {() => void} barge called when somebody begins to speak
 * @param {(words: string) => void} failed
 */
export function microphone(barge, failed) {
  const box = /** @type {HTMLInputElement} */ (byId("mic"));
  const meter = /** @type {HTMLMeterElement} */ (byId("mic-level"));
  const threshold = slider("mic-threshold", (value) => `−${Math.abs(value)} dB`);

  /** @param {(words: string) => void} gone */
  async function open(gone) {
    // Echo cancellation, or the voice from the loudspeaker interrupts itself.
    const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: false };
    const stream = await microphoneStream(audio, gone);
    const context = new AudioContext();
    const analyser = new AnalyserNode(context, { fftSize: 1024 });
    context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const gate = new SpeechGate();
    const timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const level = decibels(samples);
      meter.value = Math.max(level, meter.min);
      if (gate.hear(performance.now(), level, threshold())) barge();
    }, LOOK_MS);
    byId("mic-settings").hidden = false;
    return () => {
      byId("mic-settings").hidden = true;
      clearInterval(timer);
      for (const track of stream.getTracks()) track.stop();
      void context.close();
    };
  }

  whileChecked(box, open, failed);
}
