import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("..", import.meta.url));

/** The package as npm would publish it, unpacked where a project would have it. */
export function install(t) {
  const folder = mkdtempSync(join(tmpdir(), "realtime-tts-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const run = (command, ...args) => execFileSync(command, args, { cwd: HERE, encoding: "utf8" });
  run("npm", "pack", "--silent", "--pack-destination", folder);
  run("mkdir", "-p", join(folder, "node_modules/realtime-tts"));
  const tarball = join(folder, "realtime-tts-0.1.0.tgz");
  const into = join(folder, "node_modules/realtime-tts");
  run("tar", "-xzf", tarball, "-C", into, "--strip-components", "1");
  symlinkSync(join(HERE, "node_modules/ws"), join(folder, "node_modules/ws"));
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  return { folder, files: run("tar", "-tzf", tarball).split("\n").filter(Boolean).sort() };
}
