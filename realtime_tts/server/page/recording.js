/** A recording for a voice: from the microphone or a file, made a WAV file that every server reads. */

import { SAMPLE_RATE } from "/client/index.js";
import { wav } from "./wav.js";

const UNREADABLE = "The browser cannot read this file as sound. Try WAV, FLAC, MP3 or OGG.";

const GONE = "The microphone is gone. Connect it, or allow it again.";

/** @type {Record<string, string>} */
const REASONS = {
  NotAllowedError: "The browser refused the microphone. Allow it for this page, next to the address.",
  NotFoundError: "No microphone was found.",
  NotReadableError: "The microphone is in use by another program.",
};

/**
 * The microphone, until its tracks are stopped.
 *
 * @param {MediaTrackConstraints} audio
 * @param {(words: string) => void} [gone] called when it is unplugged, or no longer allowed
 * @throws {Error} in words
 */
export async function microphoneStream(audio, gone = () => {}) {
  if (!navigator.mediaDevices) {
    throw new Error("The microphone needs https, or the page on this machine.");
  }
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio });
    for (const track of stream.getTracks()) track.addEventListener("ended", () => gone(GONE));
    return stream;
  } catch (error) {
    const { name, message } = /** @type {Error} */ (error);
    throw new Error(REASONS[name] ?? message, { cause: error });
  }
}

/**
 * A box that keeps something open while it is checked.
 *
 * @param {HTMLInputElement} box
 * @param {(failed: (words: string) => void) => Promise<() => void>} open gives what closes it; its
 *   argument is called when it fails later
 * @param {(words: string) => void} failed
 */
export function whileChecked(box, open, failed) {
  let asked = 0; // only the last counts: the browser may ask for the microphone meanwhile
  /** @type {(() => void) | null} */
  let close = null;

  /** @param {string} words */
  function fail(words) {
    box.checked = false;
    void change();
    failed(words);
  }

  async function change() {
    const mine = ++asked;
    close?.();
    close = null;
    if (!box.checked) return;
    try {
      const opened = await open(fail);
      if (mine === asked) close = opened;
      else opened();
    } catch (error) {
      if (mine === asked) fail(/** @type {Error} */ (error).message);
    }
  }

  box.addEventListener("change", change);
}

/** Begin to record. @returns {Promise<() => Promise<Blob>>} ends it, and gives what was recorded */
export async function record() {
  // The voice as it is: what cleans up calls takes away from it.
  const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  const stream = await microphoneStream(plain);
  const recorder = new MediaRecorder(stream, { audioBitsPerSecond: 256_000 });
  /** @type {Blob[]} */
  const parts = [];
  recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
  const stopped = new Promise((resolve) => recorder.addEventListener("stop", resolve));
  recorder.start();
  return async () => {
    recorder.stop();
    await stopped;
    for (const track of stream.getTracks()) track.stop();
    return new Blob(parts, { type: recorder.mimeType });
  };
}

/** @typedef {{file: Blob, sound: AudioBuffer}} Take a WAV file, and the same to listen to */

/**
 * Any file with sound, at the rate of the models and mixed to one channel.
 *
 * @param {Blob} blob
 * @returns {Promise<Take>}
 * @throws {Error} in words
 */
export async function take(blob) {
  const context = new OfflineAudioContext(1, 1, SAMPLE_RATE); // decoding resamples to its rate
  const sound = await context.decodeAudioData(await blob.arrayBuffer()).catch((error) => {
    throw new Error(UNREADABLE, { cause: error });
  });
  const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
  const samples = Int16Array.from({ length: sound.length }, (_, at) => {
    const sum = channels.reduce((sum, channel) => sum + (channel[at] ?? 0), 0) / channels.length;
    return Math.round(32_767 * Math.max(-1, Math.min(1, sum)));
  });
  const parts = /** @type {BlobPart[]} */ (wav([new Uint8Array(samples.buffer)], SAMPLE_RATE));
  return { file: new Blob(parts, { type: "audio/wav" }), sound };
}
