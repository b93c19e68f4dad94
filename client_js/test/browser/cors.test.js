import assert from "node:assert/strict";
import { test } from "node:test";

import { open, serve, skip } from "./harness.js";

const KEY = "sesame-open-12345";

/** What a page of `origin` gets: the answers to a request with a preflight and to one without. */
async function visit(t, url, origin) {
  const page = await open(t, origin);
  await page.unrouteAll(); // with routes, Playwright answers preflights itself
  return page.evaluate(
    async ([url, key]) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const body = JSON.stringify({ input: "Hello.", voice: "alto", response_format: "wav" });
      const said = async (address, options) => {
        try {
          const answer = await fetch(url + address, options);
          const bytes = (await answer.arrayBuffer()).byteLength;
          return { status: answer.status, bytes, id: answer.headers.get("x-request-id") };
        } catch (error) {
          return { error: String(error) };
        }
      };
      return [
        await said("/v1/audio/speech", { method: "POST", headers, body }),
        await said("/readyz"),
        await import(`${url}/client/index.js`).then(
          (module) => typeof module.RealtimeTTS,
          () => "refused",
        ),
      ];
    },
    [url, KEY],
  );
}

test("a page of an allowed origin speaks over HTTP, others do not", { skip }, async (t) => {
  const allowed = "http://app.test";
  const { url } = await serve(t, "--engine", "fake", "--api-key", KEY, "--allow-origin", allowed);
  const [speech, ready, client] = await visit(t, url, allowed);
  assert.equal(speech.status, 200);
  assert.ok(speech.bytes > 10_000);
  assert.match(speech.id, /^req_/);
  assert.equal(ready.status, 200);
  assert.equal(client, "function");
  const refused = { error: "TypeError: Failed to fetch" };
  assert.deepEqual(await visit(t, url, "http://other.test"), [refused, refused, "refused"]);
});
