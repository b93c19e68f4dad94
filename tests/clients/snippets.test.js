import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { lent, skip } from "./server.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CLIENT = process.env.REALTIME_TTS_CLIENT ?? "";
const BLOCK = /^```js client=(\w+)\n(.*?)^```/gms;

const folder = await readdir(join(ROOT, "docs"));
const documents = [
  "README.md",
  ...folder.filter((name) => name.endsWith(".md")).map((name) => join("docs", name)),
];

for (const document of documents) {
  const text = await readFile(join(ROOT, document), "utf8");
  for (const { 1: client, 2: program, index } of text.matchAll(BLOCK)) {
    const line = text.slice(0, index).split("\n").length;
    if (client !== CLIENT) continue;
    test(`the program at ${document}:${line} leaves sound`, { skip }, async (t) => {
      const { url } = await lent(t, "open");
      const cwd = await mkdtemp(join(tmpdir(), "snippet-"));
      t.after(() => rm(cwd, { recursive: true }));
      await symlink(join(ROOT, "tests", "clients", client, "node_modules"), join(cwd, "node_modules"));
      const run = promisify(execFile);
      const here = program.replaceAll("127.0.0.1:8000", new URL(url).host);
      const { stdout } = await run("node", ["--input-type=module", "-e", here], { cwd });
      const files = (await readdir(cwd)).filter((name) => name !== "node_modules");
      assert.ok(stdout.trim() || files.length, "it prints and writes nothing");
      for (const name of files) assert.ok((await stat(join(cwd, name))).size > 1000, name);
    });
  }
}
