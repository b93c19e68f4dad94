/** The page: puts its parts together. */

import { SAMPLE_RATE } from "/client/index.js";
import { Chat } from "./chat.js";
import { byId, fill, say, takesKeys } from "./dom.js";
import { Live } from "./live.js";
import { Server, Trouble } from "./server.js";
import { Several } from "./several.js";
import { SNIPPETS } from "./snippets.js";
import { Speaker } from "./speaker.js";
import { streaming } from "./streaming.js";
import { tabs } from "./tabs.js";
import { typing } from "./typing.js";
import { wav } from "./wav.js";

const RETRY_MS = 2000;
const CALM_MS = 200; // between pictures, for who asked for less motion

const server = new Server();
const speaker = new Speaker(server);
const live = new Live(speaker);
const several = new Several(server, settings, (error) => complain(error.message));
const chat = new Chat(speaker, speak, complain);
const voice = /** @type {HTMLSelectElement} */ (byId("voice"));
const language = /** @type {HTMLSelectElement} */ (byId("language"));
const interruptButton = /** @type {HTMLButtonElement} */ (byId("interrupt"));
const downloadButton = /** @type {HTMLButtonElement} */ (byId("download"));
let tab = "type";

function settings() {
  return { voice: voice.value, language: language.value };
}

function speak() {
  complain("");
  const speech = speaker.speak(settings());
  speech.addEventListener("over", () => {
    if (speech.trouble) complain(speech.trouble);
    if (speech.trouble instanceof Trouble && speech.trouble.code === "gone") missed();
  });
  return speech;
}

/* What went wrong. */

/** @param {string | Error} trouble in words; empty to take the message away */
function complain(trouble) {
  const words = typeof trouble === "string" ? trouble : trouble.message;
  byId("trouble").hidden = words === "";
  say(byId("trouble-text"), words);
  if (trouble instanceof Trouble && trouble.code === "key") askForKey();
}

function askForKey() {
  byId("key-form").hidden = false;
  byId("key").focus();
}

byId("trouble-close").addEventListener("click", () => complain(""));
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  server.use(/** @type {HTMLInputElement} */ (byId("key")).value.trim());
  complain("");
  void meet();
});

/* The server. */

async function meet() {
  try {
    show(await server.about());
    byId("key-form").hidden = true;
    complain("");
  } catch (error) {
    const trouble = await server.explained(error);
    if (trouble.code === "key") say(byId("server"), "Waiting for a key");
    if (trouble.code === "key" && !server.key) askForKey();
    else complain(trouble);
    if (trouble.code === "gone" || trouble.code === "not_ready") missed();
  }
}

/** @param {import("./server.js").About} about */
function show(about) {
  fill(voice, about.voices, about.default_voice ?? about.voices[0] ?? "");
  fill(language, about.languages, "auto");
  several.voices(about.voices);
  const noise = about.random_weights ? ", random weights: noise, not speech" : "";
  say(byId("server"), `${about.model} on ${location.host}${noise}`);
  chat.offer(server.chatModel);
}

let missing = false;
/** Look for the server until it is there again; said once, for the message can be dismissed. */
async function missed() {
  if (missing) return;
  missing = true;
  say(byId("server"), "No server");
  for (let found = false; !found; ) {
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    found = await server.about().then(
      () => true,
      (trouble) => trouble.code === "key",
    );
  }
  missing = false;
  void meet();
}

/* Interrupting. */

function interrupt() {
  void (tab === "several" ? several.interrupt() : speaker.interrupt());
}

interruptButton.addEventListener("click", interrupt);
document.addEventListener("keydown", (event) => {
  const space = event.key === " " && !takesKeys(event.target);
  if (!space && event.key !== "Escape") return;
  if (!speaker.speaking && !several.speaking) return;
  event.preventDefault();
  interrupt();
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

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => {
    const name = /** @type {HTMLElement} */ (button).dataset["copy"] ?? "";
    const text = speaker.current?.text.trim() || "The tide is coming in.";
    const spoken = { ...settings(), origin: location.origin, text, key: server.key !== "" };
    void copy(SNIPPETS[name]?.(spoken) ?? "", `${button.textContent} copied`);
  });
}
byId("chat-copy").addEventListener("click", () => {
  void copy(byId("chat-command").textContent ?? "", "Command copied");
});

/** @param {string} text @param {string} done */
async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    say(byId("copied"), done);
  } catch {
    complain("The browser does not let this page copy; it does over https or on this machine.");
  }
  setTimeout(() => say(byId("copied"), ""), 3000);
}

/* Everything that moves. */

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => {
  live.recolour();
  several.recolour();
});

let shownAt = -Infinity;
/** @param {number} now */
function picture(now) {
  requestAnimationFrame(picture);
  if (calm.matches && now - shownAt < CALM_MS) return;
  shownAt = now;
  if (tab === "several") several.show(performance.now());
  else live.show(performance.now());
  interruptButton.disabled = !(tab === "several" ? several.speaking : speaker.speaking);
  downloadButton.disabled = tab === "several" || !speaker.current?.packets.length;
}

/** On a phone, what happens is below the fold: go there. */
function look() {
  if (!matchMedia("(max-width: 900px)").matches) return;
  const behavior = calm.matches ? "auto" : "smooth";
  document.querySelector(".stage")?.scrollIntoView({ behavior, block: "start" });
}

typing(speak);
streaming(speak);
for (const id of ["stream-speak", "several-speak"]) byId(id).addEventListener("click", look);
const choose = tabs(/** @type {HTMLElement} */ (document.querySelector("[role=tablist]")), (name) => {
  if ((name === "several") !== (tab === "several")) interrupt(); // one stage at a time
  tab = name;
  byId("one").hidden = name === "several";
  byId("several").hidden = name !== "several";
  byId("head").hidden = name === "several";
  history.replaceState(null, "", `#${name}`);
});
choose(document.getElementById(`tab-${location.hash.slice(1)}`) ? location.hash.slice(1) : "type");
for (const id of ["typed", "pasted", "chat-say"]) {
  byId(id).addEventListener("focus", () => voice.value && speaker.prepare(settings()));
}
requestAnimationFrame(picture);
void meet();
