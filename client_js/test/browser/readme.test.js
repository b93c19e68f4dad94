import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { open, server, skip, stage } from "./harness.js";

const README = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const PAGE = README.match(/^```html\n(.*?)^```/ms)[1];
const example = (word) => README.match(new RegExp("^```js\n((?:(?!^```).)*" + word + ".*?)^```", "ms"))[1];

test("the README's page, as it stands, speaks and stops", { skip }, async (t) => {
  const url = await server();
  const page = await open(t, url, PAGE);
  await page.waitForFunction(() => globalThis.hush.onclick);
  await page.click("#speak");
  await page.waitForTimeout(1500);
  await page.click("#hush");
  for (let i = 0; i < 600 && page.logged.length === 0; i++) await page.waitForTimeout(100);
  const [spoken, remaining] = page.logged[0].split(" | ");
  assert.equal(`${spoken}${remaining}`.replace(/\s/g, ""), "Goodmorning.Thetideiscomingin.");
  assert.ok(remaining.length > 0, page.logged[0]);
  assert.deepEqual(page.errors, []);
});

test("the README's captions end with the last word", { skip }, async (t) => {
  const page = await stage(t, await server(), { settings: { wordTimes: "on", speed: 1.2 } });
  const [shown, text] = await page.evaluate(async (captions) => {
    document.body.innerHTML = "<p id=caption>";
    const playback = new Function(`${captions}; return playback;`)();
    await playback.done;
    await sleep(500); // what is played is heard a little later
    return [caption.textContent, playback.turn.text];
  }, example("caption"));
  assert.equal(shown, text);
});

test("the README's volume is all that reaches the loudspeaker", { skip }, async (t) => {
  const page = await stage(t, await server());
  const found = await page.evaluate(async (volume) => {
    const { Player } = await import("/client/player.js");
    const { context } = player;
    const other = new Player({ context });
    const { connect } = AudioNode.prototype;
    const loud = [];
    AudioNode.prototype.connect = function (...to) {
      if (to[0] === context.destination) loud.push(this);
      return connect.apply(this, to);
    };
    await other.unlock();
    AudioNode.prototype.connect = connect;
    const half = new Function("player", `${volume}; return volume;`)(other);
    const [before, behind] = [other, { context, analyser: half }].map(globalThis.listenTo);
    const ears = await Promise.all([before, behind]);
    await other.play(tts.speak("One two three.")).done;
    const [all, left] = await Promise.all(ears.map((ear) => ear()));
    return { only: loud.length === 1 && loud[0] === other.analyser, loudest: all.loudest, share: left.loudest / all.loudest };
  }, example("GainNode"));
  assert.ok(found.only, "something else reaches it, too");
  assert.ok(found.loudest > 0.1);
  assert.ok(Math.abs(found.share - 0.5) < 0.01, `${found.share} of it`);
});
