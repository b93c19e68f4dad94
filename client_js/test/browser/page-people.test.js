// The demo page for everybody: names and roles, the keyboard, contrast, both themes, a phone.
import assert from "node:assert/strict";
import { test } from "node:test";

import { server, skip } from "./harness.js";
import { PHONE, does, faults, met, more, state, stream, until, visit } from "./page-visit.js";

/** Runs in the page: until all colours, which change softly, are those that stay. */
const settled = () => Promise.all(document.getAnimations().map((one) => one instanceof CSSTransition && one.finished.catch(() => {})));

const TABS = ["speak", "type", "several", "chat"];

test("the demo page, for everybody", { skip }, async (t) => {
  const url = await server();

  const narrow = { ...PHONE, width: 320 };
  for (const [theme, size] of [["light"], ["dark"], ["light", PHONE], ["dark", PHONE], ["light", narrow]]) {
    const where = size ? `, on a phone of ${size.width} px` : "";
    await t.test(`is readable and named, ${theme}${where}`, async (t) => {
      const page = await visit(t, url, { theme, size });
      await met(page);
      for (const part of ["options", "own", "details", "code"]) await more(page, part);
      await page.evaluate(() => {
        for (const id of ["own", "blend-form", "chat-present"]) document.getElementById(id).hidden = false;
      });
      for (const tab of TABS) {
        await page.click(`#tab-${tab}`);
        await page.evaluate(settled);
        assert.deepEqual(await page.evaluate(faults), [], tab);
      }
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const dark = ground.match(/\d+/g).every((part) => part < 60);
      assert.equal(dark, theme === "dark", ground);
      const painted = await page.evaluate(async () => (await import("/page/timeline.js")).colours());
      for (const [name, colour] of Object.entries(painted)) assert.ok(colour, `the charts lack --${name}`);
      assert.deepEqual(page.errors, []);
    });
  }

  await t.test("needs no mouse", async (t) => {
    const page = await visit(t, url);
    await met(page);
    const order = [];
    for (let i = 0; i < 5; i++) {
      await page.keyboard.press("Tab");
      order.push(await page.evaluate(() => document.activeElement.id || document.activeElement.dataset.voice));
    }
    assert.deepEqual(order, ["tab-speak", "text", "alto", "bass", "soprano"]);
    await page.focus("#tab-speak");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.evaluate(() => document.activeElement.id), "tab-type");
    assert.ok(await page.isVisible("#panel-type"));
    assert.ok(await page.isHidden("#panel-speak"));
    await page.keyboard.press("End");
    assert.ok(await page.isVisible("#panel-chat"));
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.getAttribute("#tab-speak", "aria-selected"), "true");
  });

  await t.test("plays and interrupts with one button, which keeps the focus", async (t) => {
    const page = await visit(t, url);
    await met(page);
    await page.fill("#text", "The tide is coming in, slowly but surely, and all the boats are afloat. ".repeat(3));
    const box = await page.locator("#play").boundingBox();
    await page.click("#play");
    for (let turn = 0; turn < 2; turn++) {
      await until(page, "speaking");
      assert.match(await page.textContent("#play"), /^Interrupt/);
      assert.deepEqual(await page.locator("#play").boundingBox(), box);
      await page.keyboard.press("Space");
      await does(page, "play");
      await until(page, "interrupted");
      assert.match(await page.textContent("#play"), /^Play/);
      assert.equal(await page.evaluate(() => document.activeElement.id), "play");
      await page.keyboard.press("Space");
    }
    await does(page, "interrupt");
  });

  await t.test("tells heard from unheard text in both schemes", async (t) => {
    for (const theme of ["light", "dark"]) {
      const page = await visit(t, url, { theme });
      await met(page);
      await stream(page, "One two three four five six seven eight nine ten eleven twelve.");
      await page.waitForFunction(() => document.querySelector("#transcript .heard"));
      const contrasts = await page.evaluate(() => {
        const light = (colour) => {
          const [r, g, b] = colour.match(/[\d.]+/g).map((part) => part / 255)
            .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const box = document.querySelector("#transcript");
        const heard = light(getComputedStyle(box.querySelector(".heard")).color);
        const rest = light(getComputedStyle(box.querySelector(".sent, .coming")).color);
        const ground = light(getComputedStyle(box).backgroundColor);
        const between = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        return [between(heard, rest), between(rest, ground)];
      });
      assert.ok(Math.min(...contrasts) >= 4.5, `${theme}: ${contrasts}`);
    }
  });

  await t.test("tells chosen from others, and heard from unheard, in a person's own colours", async (t) => {
    const page = await visit(t, url, { before: (page) => page.emulateMedia({ forcedColors: "active" }) });
    await met(page);
    await stream(page, "One two three four five six seven eight nine ten eleven twelve.");
    await page.waitForFunction(() => document.querySelector("#transcript .heard"));
    const pairs = await page.evaluate(() => {
      const style = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
      const both = (one, other, name) => [style(one, name), style(other, name)];
      return [
        both("[aria-selected=true]", "[aria-selected=false]", "backgroundColor"),
        both("[aria-pressed=true]", "[aria-pressed=false]", "backgroundColor"),
        both("#transcript .heard", "#transcript :is(.sent, .coming)", "color"),
        [style("#play", "color"), style("#play", "backgroundColor")],
        ["auto", style("#play", "forcedColorAdjust")], // text on a ground of its own is unreadable
      ];
    });
    for (const [one, other] of pairs) assert.notEqual(one, other);
  });

  await t.test("moves less for who asked for less motion", async (t) => {
    const count = () => {
      const { clearRect } = CanvasRenderingContext2D.prototype;
      globalThis.pictures = 0;
      CanvasRenderingContext2D.prototype.clearRect = function (...args) {
        globalThis.pictures += 1;
        return clearRect.apply(this, args);
      };
    };
    const page = await visit(t, url, { reduced: true, before: (page) => page.addInitScript(count) });
    await met(page);
    const look = () => page.evaluate(() => [globalThis.pictures, performance.now() / 1000]);
    const [pictures, began] = await look();
    await page.waitForTimeout(1000);
    const [later, ended] = await look();
    assert.ok(later - pictures <= 5 * (ended - began) + 1, `${later - pictures} in ${ended - began} s`);
    assert.equal(await state(page), "idle");
  });

  await t.test("asks for no picture while nothing moves", async (t) => {
    const count = () => {
      const { requestAnimationFrame } = globalThis;
      globalThis.pictures = 0;
      globalThis.requestAnimationFrame = (picture) => {
        globalThis.pictures += 1;
        return requestAnimationFrame(picture);
      };
    };
    const page = await visit(t, url, { before: (page) => page.addInitScript(count) });
    await met(page);
    const pictures = () => page.evaluate(() => globalThis.pictures);
    const still = async () => {
      await page.waitForTimeout(300);
      const before = await pictures();
      await page.waitForTimeout(500);
      assert.equal((await pictures()) - before, 0);
    };
    await until(page, "idle");
    await still();
    const before = await pictures();
    await stream(page, "One two three four five six seven eight nine ten eleven twelve.");
    await until(page, "done");
    assert.ok((await pictures()) - before > 5, "it moves while it speaks");
    await still();
  });

  await t.test("asks for a click where the browser keeps the sound back, and speaks then", async (t) => {
    // All by the page itself, until the click: what a test evaluates counts as a gesture.
    const press = () => {
      let pressed = false;
      const look = setInterval(() => {
        const play = document.querySelector("#play");
        if (!pressed && play && !play.disabled) {
          play.click();
          pressed = true;
        }
        const state = document.querySelector("#state");
        if (state?.dataset.state !== "locked") return;
        clearInterval(look);
        console.log(state.textContent);
      }, 20);
    };
    const page = await visit(t, url, { before: (page) => page.addInitScript(press) });
    const said = () => page.logged.some((line) => line.startsWith("Click anywhere to allow sound"));
    for (let i = 0; i < 1200 && !said(); i++) await new Promise((done) => setTimeout(done, 50));
    assert.ok(said(), page.logged.join("\n"));
    await page.click("h1");
    await until(page, "speaking");
    assert.deepEqual(page.errors, []);
  });

  await t.test("breaks a word that is wider than a phone", async (t) => {
    const page = await visit(t, url, { size: PHONE });
    await met(page);
    await stream(page, `It is at https://example.com/${"tide".repeat(60)} now.`);
    assert.deepEqual(await page.evaluate(faults), []);
  });

  await t.test("says so when a text has nothing to speak", async (t) => {
    const page = await visit(t, url);
    await met(page);
    await page.fill("#text", "😀 …");
    await page.click("#play");
    await until(page, "done");
    await page.waitForFunction(() => document.querySelector("#announce").textContent !== "");
    for (const place of ["#state", "#announce"]) {
      assert.match(await page.textContent(place), /^Done: the text had nothing to speak/);
    }
  });

  await t.test("keeps the interrupt at the thumb on a phone", async (t) => {
    const page = await visit(t, url, { size: PHONE });
    await met(page);
    const { y, height } = await page.locator("#play").boundingBox();
    assert.ok(y + height <= PHONE.height && y > PHONE.height - 100);
    assert.ok(height >= 44);
  });

  await t.test("covers nothing on a phone that has the focus", async (t) => {
    const page = await visit(t, url, { size: { width: 390, height: 500 } });
    await met(page);
    for (const part of ["options", "own", "details", "code"]) await more(page, part);
    for (let last = false; !last; ) {
      await page.keyboard.press("Tab");
      last = await page.evaluate(() => {
        const { id, localName, textContent } = document.activeElement;
        const button = document.querySelector(".act").getBoundingClientRect();
        const { top } = document.activeElement.getBoundingClientRect();
        if (id !== "play" && top > button.top - 8) throw new Error(`${localName} ${id} is covered`);
        return textContent === "health";
      });
    }
  });

  await t.test("leaves the field and the button in view above a phone's keyboard", async (t) => {
    const page = await visit(t, url, { size: { width: 390, height: 430 }, hash: "#type" });
    await met(page);
    await page.focus("#typed");
    const [field, button] = await Promise.all(
      ["#typed", "#play"].map((one) => page.locator(one).boundingBox()),
    );
    assert.ok(field.y >= 0 && field.y + field.height <= button.y, "the field is not covered");
    assert.ok(button.y + button.height <= 430);
  });
});
