/** The page: puts its parts together. */

import { SAMPLE_RATE } from "/client/index.js";
import { Chat } from "./chat.js";
import { Controls } from "./controls.js";
import { byId, say, takesKeys } from "./dom.js";
import { Live } from "./live.js";
import { OwnVoices } from "./own.js";
import { Program } from "./program.js";
import { Server, Trouble } from "./server.js";
import { Several } from "./several.js";
import { Speaker } from "./speaker.js";
import { Status } from "./status.js";
import { streaming } from "./streaming.js";
import { tabs } from "./tabs.js";
import { typing } from "./typing.js";
import { wav } from "./wav.js";

const RETRY_MS = 2000;
const LOADING_MS = 500;
const CALM_MS = 200; // between pictures, for who asked for less motion

let tab = "speak";
let known = false; // what the server can do
let retry = 0; // the timer of the next try
let asked = 0; // for the next picture, of the browser
let pause = 0; // the timer before it

const server = new Server();
const status = new Status(redraw);
const speaker = new Speaker(server);
const live = new Live(speaker, status);
const controls = new Controls(() => {
  program.show();
  if (tab === "speak" || tab === "type") play();
});
const several = new Several(server, () => controls.settings, complain);
const chat = new Chat(speaker, speak, (words) => complain(new Trouble("chat", words)));
const stream = streaming(speak);
const typed = typing(speak);
const RETRIES = {
  speak: stream,
  type: typed.retry,
  several: () => several.retry(),
  chat: () => chat.retry() || settle(),
};
const playButton = /** @type {HTMLButtonElement} */ (byId("play"));
const downloadButton = /** @type {HTMLButtonElement} */ (byId("download"));
const program = new Program(
  () => ({ settings: controls.settings, text: text(), key: server.key !== "" }),
  complain,
);
const own = new OwnVoices(server, speaker.player, async (voice) => {
  show(await server.about());
  if (voice) controls.choose(voice);
  program.show();
});

/** What the same would be as a program. */
function text() {
  const field = tab === "type" ? "typed" : "text";
  const written = /** @type {HTMLTextAreaElement} */ (byId(field)).value.trim();
  return (tab === "chat" ? speaker.current?.text.trim() : written) || "The tide is coming in.";
}

function speak() {
  settle();
  const speech = speaker.speak(controls.settings);
  speech.addEventListener("over", () => {
    if (speech.trouble) complain(speech.trouble);
  });
  return speech;
}

/* What went wrong. */

/** @param {Error} trouble in words */
function complain(trouble) {
  settle();
  const waitMs = trouble instanceof Trouble ? trouble.waitMs : 0;
  const again = tab in RETRIES ? RETRIES[/** @type {keyof RETRIES} */ (tab)] : null;
  const retries = waitMs > 0 && again !== null;
  const loads = trouble instanceof Trouble && trouble.code === "not_ready"; // nothing is wrong then
  if (!loads) status.trouble(trouble.message, waitMs, retries);
  if (retries) retry = window.setTimeout(() => (again(), redraw()), waitMs);
  if (!(trouble instanceof Trouble)) return;
  if (trouble.code === "key") askForKey();
  if (trouble.code === "gone" || trouble.code === "not_ready") void missed(trouble);
}

/** What went wrong is over, and nothing is tried again. */
function settle() {
  clearTimeout(retry);
  status.trouble("");
}

function askForKey() {
  byId("key-form").hidden = false;
  byId("key").focus();
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  server.use(/** @type {HTMLInputElement} */ (byId("key")).value.trim());
  settle();
  void meet();
});

/* The server. */

async function meet() {
  try {
    show(await server.about());
    byId("key-form").hidden = true;
    settle();
  } catch (error) {
    const trouble = await server.explained(error);
    if (trouble.code === "key") status.server("key", "Waiting for a key");
    if (trouble.code === "key" && !server.key) askForKey();
    else complain(trouble);
  }
}

/** @param {import("./server.js").About} about */
function show(about) {
  controls.offer(about);
  own.offer(about, server.chatModel !== null);
  several.voices(about.voices);
  const noise = about.random_weights ? ", random weights: noise, not speech" : "";
  status.server("idle", `Ready: ${about.model} on ${location.host}${noise}`);
  chat.offer(server.chatModel);
  known = true;
  // So that the first click is as quick as any other.
  if (!controls.missing) speaker.prepare(controls.settings);
}

let missing = false;
/** Look for the server until it is there, and say how far it is. @param {Trouble} trouble */
async function missed(trouble) {
  if (missing) return;
  missing = true;
  /** @type {Trouble | null} */
  let now = trouble;
  while (now && now.code !== "key") {
    const code = /** @type {string} */ (now.code);
    const loads = code === "not_ready";
    status.server(loads ? "loading" : "gone", now.message);
    await new Promise((resolve) => setTimeout(resolve, loads ? LOADING_MS : RETRY_MS));
    now = await server.about().then(
      () => null,
      (again) => again,
    );
    if (code !== now?.code) settle(); // what was said of it is no longer true
  }
  missing = false;
  void meet();
}

/* One button, to play and to interrupt. */

function speaking() {
  return tab === "several" ? several.speaking : speaker.speaking;
}

function play() {
  settle();
  if (controls.missing) {
    complain(new Error(controls.missing));
    /** @type {HTMLDetailsElement} */ (byId("own")).open = true;
  } else if (tab === "several") several.speak();
  else if (tab === "speak") stream();
  else if (tab === "type") typed.play();
}

function interrupt() {
  clearTimeout(retry);
  void (tab === "several" ? several.interrupt() : speaker.interrupt());
}

playButton.addEventListener("click", () => (speaking() ? interrupt() : play()));
document.addEventListener("keydown", (event) => {
  const space = event.key === " " && !takesKeys(event.target);
  if (event.key === "Escape") settle();
  if (!space && !(event.key === "Escape" && speaking())) return;
  event.preventDefault();
  if (event.repeat) return; // of a key that began to speak, and is still held
  if (speaking()) interrupt();
  else if (!playButton.disabled) play();
});

/* Taking it away. */

downloadButton.addEventListener("click", () => {
  const packets = speaker.current?.packets ?? [];
  const parts = /** @type {BlobPart[]} */ (wav(packets, SAMPLE_RATE));
  const url = URL.createObjectURL(new Blob(parts, { type: "audio/wav" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "speech.wav";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
});

byId("chat-copy").addEventListener("click", () => {
  void program.copy(byId("chat-command").textContent ?? "", byId("chat-copied"));
});

/* A picture after each change, and one after another while something moves: each costs a battery. */

const calm = matchMedia("(prefers-reduced-motion: reduce)");
for (const theme of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
  matchMedia(theme).addEventListener("change", () => {
    live.recolour();
    several.recolour();
    redraw();
  });
}
for (const kind of ["input", "resize", "toggle"]) addEventListener(kind, redraw, { capture: true });
speaker.addEventListener("speech", redraw);

function redraw() {
  clearTimeout(pause);
  asked ||= requestAnimationFrame(picture);
}

function picture() {
  asked = 0;
  const now = performance.now();
  if (tab === "several") several.show(now);
  live.show(now, tab === "several" ? several : null);
  const busy = speaking();
  say(byId("play-word"), busy ? "Interrupt" : tab === "several" ? "Play all" : "Play");
  playButton.dataset["does"] = busy ? "interrupt" : "play";
  playButton.disabled = !busy && (!known || tab === "chat");
  downloadButton.disabled = tab === "several" || !speaker.current?.packets.length;
  if (!busy && !status.counts(now)) return;
  if (calm.matches) pause = window.setTimeout(redraw, CALM_MS);
  else redraw();
}

const choose = tabs(/** @type {HTMLElement} */ (document.querySelector("[role=tablist]")), (name) => {
  if ((name === "several") !== (tab === "several")) interrupt(); // one stage at a time
  if (name !== tab) clearTimeout(retry);
  if (name === "several") several.open();
  tab = name;
  byId("one").hidden = name === "several";
  byId("several").hidden = name !== "several";
  byId("chips").classList.toggle("away", name === "several" || name === "chat");
  history.replaceState(null, "", `#${name}`);
  program.show();
  redraw();
});
byId("insecure").hidden = isSecureContext;
choose(document.getElementById(`tab-${location.hash.slice(1)}`) ? location.hash.slice(1) : "speak");
void meet();
