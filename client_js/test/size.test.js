import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const SOURCES = new URL("../src/", import.meta.url);
const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const LIMIT = 14_600;

const files = readdirSync(SOURCES)
  .filter((name) => name !== "react.js") // only apps that ask for it load it, from their bundler
  .sort()
  .map((name) => readFileSync(new URL(name, SOURCES), "utf8"));
const gzipped = (text) => gzipSync(text, { level: 9 }).length;

/** Bytes that the README states. */
const said = (pattern) => Number(README.match(pattern)[1].replace(",", ""));

test("all of the source is at most 14,600 bytes as one gzip stream, and as the README says", (t) => {
  const stream = gzipped(files.join(""));
  t.diagnostic(`${stream} bytes as one gzip stream`);
  assert.ok(stream <= LIMIT, `${stream} bytes; find what is said twice`);
  assert.ok(stream <= said(/([\d,]+) bytes as one gzip stream/), `${stream} bytes as one stream`);
});

test("its files, each gzipped as a server sends it, add up to what the README says", (t) => {
  const sum = files.map(gzipped).reduce((total, size) => total + size);
  t.diagnostic(`${sum} bytes file by file`);
  assert.ok(sum <= said(/([\d,]+) bytes file by file/), `${sum} bytes file by file`);
});
