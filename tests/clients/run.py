"""`make test-clients`: the tests of each client, in an environment with that client and ours.

A folder of tests/clients with a requirements.txt is a Python client, one with a package.json a Node
client. Environments are kept in .venv-clients and are made again when what goes into them changes.
With a requirements-lowest.txt the tests run a second time, with the oldest versions that work.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from snippets import snippets

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".venv-clients"
COMMON = HERE / "requirements.txt"
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


class Failed(Exception):
    """A command ended with another status than 0."""


@dataclass(frozen=True)
class Run:
    """One client in one environment; `requirements` None: a Node client."""

    client: str
    requirements: Path | None = None

    @property
    def name(self) -> str:
        lowest = self.requirements is not None and self.requirements.stem.endswith("-lowest")
        return f"{self.client}-lowest" if lowest else self.client

    @property
    def folder(self) -> Path:
        return HERE / self.client

    def missing(self) -> str | None:
        """What this machine lacks for it, if anything."""
        if self.requirements is None and not (shutil.which("node") and shutil.which("npm")):
            return "needs Node and npm, and there is none on the PATH"
        return None

    def _in_documents(self) -> bool:
        language = "js" if self.requirements is None else "python"
        return any((each.client, each.language) == (self.client, language) for each in snippets())

    def run(self) -> None:
        """Make the environment and run the tests. Raises Failed."""
        environment = os.environ | {"REALTIME_TTS_CLIENT": self.client}
        environment.setdefault("REALTIME_TTS_PYTHON", sys.executable)
        if self.requirements is None:
            _install_node(self.folder)
            tests = sorted(str(path) for path in self.folder.glob("*.test.js"))
            tests += [str(HERE / "snippets.test.js")] if self._in_documents() else []
            _call(["node", "--test", "--test-reporter=spec", *tests], environment, self.folder)
        else:
            python = _install_python(self.name, self.requirements)
            tests = [str(self.folder)]
            tests += [str(HERE / "test_snippets.py")] if self._in_documents() else []
            _call([str(python), "-m", "pytest", "-q", *tests], environment)


def runs() -> Iterator[Run]:
    """Every client that there is, the lowest versions after the newest."""
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir()):
        for name in ("requirements.txt", "requirements-lowest.txt"):
            if (folder / name).exists():
                yield Run(folder.name, folder / name)
        if (folder / "package.json").exists():
            yield Run(folder.name)


def _install_python(name: str, requirements: Path) -> Path:
    """The interpreter of an environment that has what is asked for."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    inputs = [requirements, COMMON, ROOT / "pyproject.toml"]
    if not _is_fresh(folder / ".installed", inputs):
        shutil.rmtree(folder, ignore_errors=True)
        _call([sys.executable, "-m", "venv", str(folder)])
        wanted = ["--requirement", str(requirements), "--requirement", str(COMMON)]
        _call([str(python), *PIP, *wanted, "--editable", str(ROOT)])
        (folder / ".installed").write_text(_digest(inputs))
    return python


def _install_node(folder: Path) -> None:
    stamp, inputs = folder / "node_modules" / ".installed", [folder / "package.json"]
    if not _is_fresh(stamp, inputs):
        npm = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"]
        _call(npm, cwd=folder)
        stamp.write_text(_digest(inputs))


def _is_fresh(stamp: Path, inputs: list[Path]) -> bool:
    return stamp.exists() and stamp.read_text() == _digest(inputs)


def _digest(inputs: list[Path]) -> str:
    """Of what the files say: a fresh clone gives all of them new times."""
    parts = [sys.version, *(path.read_text(encoding="utf-8") for path in inputs)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _call(command: list[str], environment: dict[str, str] | None = None, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, env=environment)
    if done.returncode != 0:
        raise Failed(f"{Path(command[0]).name} ended with {done.returncode}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clients", nargs="*", help="folders of tests/clients (default: all)")
    asked = parser.parse_args().clients
    known = list(runs())
    unknown = sorted(set(asked) - {run.client for run in known})
    if unknown:
        names = ", ".join(dict.fromkeys(run.client for run in known))
        parser.error(f"no client {unknown[0]!r}; there are: {names}")
    results = []
    for run in known:
        if asked and run.client not in asked:
            continue
        print(f"── {run.name}", flush=True)
        began = time.monotonic()
        why = run.missing()
        outcome = f"skipped: {why}" if why else "passed"
        if why is None:
            try:
                run.run()
            except Failed as failure:
                outcome = f"FAILED: {failure}"
        results.append((run.name, time.monotonic() - began, outcome))
    print("── clients")
    for name, seconds, outcome in results:
        print(f"{name:24} {seconds:6.1f} s  {outcome}")
    return 1 if any(outcome.startswith("FAILED") for *_, outcome in results) else 0


if __name__ == "__main__":
    sys.exit(main())
