import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const run = (command, ...args) => execFileSync(command, args, { cwd: HERE, encoding: "utf8" });

let packed;

/** The package as npm would publish it. */
function pack() {
  if (!packed) {
    packed = mkdtempSync(join(tmpdir(), "realtime-tts-"));
    run("npm", "pack", "--silent", "--pack-destination", packed);
  }
  return join(packed, "realtime-tts-0.1.0.tgz");
}

after(() => packed && rmSync(packed, { recursive: true }));

/** A project that has the package, unpacked, where npm would put it. */
export function install(t) {
  const folder = mkdtempSync(join(tmpdir(), "realtime-tts-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const tarball = pack();
  const into = join(folder, "node_modules/realtime-tts");
  run("mkdir", "-p", into);
  run("tar", "-xzf", tarball, "-C", into, "--strip-components", "1");
  symlinkSync(join(HERE, "node_modules/ws"), join(folder, "node_modules/ws"));
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  return { folder, files: run("tar", "-tzf", tarball).split("\n").filter(Boolean).sort() };
}
