import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { server, skip } from "./browser/server.js";
import { install } from "./installed.js";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const README = readFileSync(join(HERE, "README.md"), "utf8");
const NODE_EXAMPLE = README.match(/## In Node.*?```js\n(.*?)```/s)[1];
const missing = !existsSync(join(HERE, "node_modules/typescript")) && "`npm install` was not run";

test("what npm packs has code, types and README, and no tests", { skip: missing }, (t) => {
  const { folder, files } = install(t);
  const names = files.map((name) => name.replace("package/", ""));
  for (const name of ["README.md", "LICENSE", "src/index.js", "src/player-worklet.js"]) {
    assert.ok(names.includes(name), name);
  }
  for (const name of ["index", "player", "protocol", "api", "internal", "messages"]) {
    assert.ok(names.includes(`types/${name}.d.ts`), name);
  }
  assert.deepEqual(
    names.filter((name) => /^(test|tsconfig|worklet|node_modules)/.test(name)),
    [],
  );
  writeFileSync(
    join(folder, "use.ts"),
    `import { RealtimeTTS, type Turn } from "realtime-tts";
     import { Player } from "realtime-tts/player";
     import type { RealtimeTTS as Declared } from "./node_modules/realtime-tts/types/api.js";
     const connect: typeof Declared.connect = RealtimeTTS.connect;
     const tts = await RealtimeTTS.connect("x", { voice: "ava", sampling: { topK: 5 } });
     const turn: Turn = tts.speak(["a"]);
     for await (const packet of turn) packet.byteLength.toFixed();
     const player = new Player();
     const { lead }: { lead: number } = { lead: player.play(turn).stats().leadSeconds };
     player.addEventListener("packet", ({ detail }) => detail.playback.turn === turn && detail.samples + 1);
     player.addEventListener("state", console.log, { once: true });
     // @ts-expect-error: a packet has no state
     player.addEventListener("packet", ({ detail }) => detail.state);
     // @ts-expect-error: there is no such option
     await RealtimeTTS.connect("x", { voise: "ava" });
     // @ts-expect-error: internal
     turn.attach(null);`,
  );
  writeFileSync(
    join(folder, "node.ts"), // a program that has Node's types, and none of a browser
    `import { RealtimeTTS } from "realtime-tts";
     import { parseServerMessage, type Ready } from "realtime-tts/protocol";
     declare global { interface URL { href: string } }
     export const { ready }: { ready: Ready } = await RealtimeTTS.connect("x");
     parseServerMessage("{}")?.type;`,
  );
  const tsc = join(HERE, "node_modules/typescript/bin/tsc");
  const strict = ["--strict", "--exactOptionalPropertyTypes", "--skipDefaultLibCheck"];
  const flags = ["--noEmit", ...strict, "--module", "nodenext", "--target", "es2023", "--lib"];
  for (const [lib, file] of [["es2023", "node.ts"], ["es2023,dom,dom.iterable,dom.asynciterable", "use.ts"]]) {
    execFileSync("node", [tsc, ...flags, lib, file], { cwd: folder, stdio: "inherit" });
  }
});

test("a checkout without a single package installed can be packed", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "realtime-tts-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const name of ["package.json", "README.md", "LICENSE", "src", "types"]) {
    cpSync(join(HERE, name), join(folder, name), { recursive: true });
  }
  const packed = execFileSync("npm", ["pack", "--json", "--dry-run"], { cwd: folder });
  const names = JSON.parse(packed)[0].files.map(({ path }) => path);
  const { exports } = JSON.parse(readFileSync(join(HERE, "package.json"), "utf8"));
  const promised = Object.values(exports).flatMap((entry) => Object.values(Object(entry)));
  for (const file of promised.filter((path) => path.startsWith("./"))) {
    assert.ok(names.includes(file.slice(2)), `${file} is exported and not packed`);
  }
});

/** What an editor shows of the text that each code has between two bars, and of its type. */
function hover(ts, folder, codes) {
  const files = codes.map((code, i) => {
    const file = join(folder, `hover${i}.ts`);
    writeFileSync(file, code.replaceAll("|", ""));
    return file;
  });
  const host = {
    getScriptFileNames: () => files,
    getScriptVersion: () => "1",
    getScriptSnapshot: (name) =>
      existsSync(name) ? ts.ScriptSnapshot.fromString(readFileSync(name, "utf8")) : undefined,
    getCurrentDirectory: () => folder,
    getCompilationSettings: () => ({
      strict: true,
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2023,
    }),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    directoryExists: ts.sys.directoryExists,
    realpath: ts.sys.realpath,
  };
  const editor = ts.createLanguageService(host);
  return codes.map((code, i) => {
    const info = editor.getQuickInfoAtPosition(files[i], code.indexOf("|"));
    return ts.displayPartsToString(info?.documentation);
  });
}

test("an editor shows what a method, an option or a figure means", { skip: missing }, async (t) => {
  const { default: ts } = await import("typescript");
  const { folder } = install(t);
  const IMPORTS = `import { RealtimeTTS } from "realtime-tts";
    import { Player } from "realtime-tts/player";\n`;
  const expected = [
    ["|RealtimeTTS|;", /A session with a server/],
    ["RealtimeTTS.|connect|;", /Connect, and set the session up/],
    ['RealtimeTTS.connect("x", { |leadMs|: 1 });', /ahead of the listener/],
    ["(tts: RealtimeTTS) => tts.|ready|;", /voices, languages, effective settings/],
    ["(tts: RealtimeTTS) => tts.|speak|;", /text deltas as they arrive/],
    ["(tts: RealtimeTTS) => tts.turn().|interrupt|();", /no further packet/],
    ["(tts: RealtimeTTS) => tts.turn().|samplesReceived|;", /whether or not they were read/],
    ['(tts: RealtimeTTS) => tts.turn().send("a", { |end|: true });', /the last text/],
    ["new Player().|bargeIn|();", /drop everything not yet played/],
    ["(p: Player, tts: RealtimeTTS) => p.play(tts.turn()).|done|;", /all was played or cleared/],
    ["(p: Player, tts: RealtimeTTS) => p.play(tts.turn()).stats().|leadSeconds|;", /not yet played/],
  ];
  const shown = hover(ts, folder, expected.map(([code]) => IMPORTS + code));
  for (const [i, [code, documentation]] of expected.entries()) {
    assert.match(shown[i], documentation, code);
  }
});

test(
  "the README's lines for Node speak, from the packed package",
  { skip: missing || skip },
  async (t) => {
    const { folder } = install(t);
    const url = await server();
    const example = NODE_EXAMPLE.replace("ws://127.0.0.1:8000", url.replace("http", "ws"))
      .replace('"ava"', '"alto"'); // a voice of the fake engine
    writeFileSync(join(folder, "speak.js"), example);
    execFileSync("node", ["speak.js"], { cwd: folder, timeout: 60_000 });
    const speech = readFileSync(join(folder, "speech.pcm"));
    assert.ok(speech.length > 24_000, `${speech.length} bytes`);
  },
);
