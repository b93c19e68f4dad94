import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const SOURCES = new URL("../src/", import.meta.url);
const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const KB = 1024;

/** Each file compressed as the server sends it, and summed. */
function kilobytes(prepare = (source) => source) {
  const files = readdirSync(SOURCES).map((name) => readFileSync(new URL(name, SOURCES), "utf8"));
  const sizes = files.map((source) => gzipSync(prepare(source), { level: 9 }).length);
  return sizes.reduce((sum, size) => sum + size) / KB;
}

const withoutComments = (source) =>
  source
    .replace(/\/\*[^]*?\*\//g, "")
    .replace(/^\s*\/\/.*\n/gm, "")
    .replace(/\n\s*\n/g, "\n");

/** What the README says, to a tenth. */
const said = (pattern) => Number(README.match(pattern)[1]);

test("the package is no larger than the README says, and its code is within the limit", (t) => {
  const [all, code] = [kilobytes(), kilobytes(withoutComments)];
  t.diagnostic(`${all.toFixed(2)} KB as served, ${code.toFixed(2)} KB of it code`);
  assert.ok(all <= said(/([\d.]+) KB gzipped as served/) + 0.05, `${all} KB as served`);
  assert.ok(code <= said(/([\d.]+) KB without comments/) + 0.05, `${code} KB of code`);
  assert.ok(code <= 12, `${code} KB of code; find what is said twice`);
});
