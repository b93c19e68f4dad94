"""`make test-clients`: the tests of each client, in an environment with that client and ours.

A folder of tests/clients with a requirements.txt is a Python client, one with a package.json a Node
client. Environments are kept in .venv-clients and are made again when what goes into them changes.
With a requirements-lowest.txt the tests run again with the oldest versions that work, with a
requirements-next.txt with a version that is not out yet.

Two environments are tested at a time. Each has a lender of servers (lending.py) to itself, since
tests count on nobody else's speech, and passes it on with its servers, since a start takes seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.clients.kinds import LENDER_VARIABLE
from tests.clients.lending import Lender, lending
from tests.clients.snippets import snippets

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".venv-clients"
COMMON = HERE / "requirements.txt"
PLUGIN_SUITE = HERE / "plugins"
"""The tests that the plugins of every NAME_plugins have in common."""
AT_A_TIME = 2
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
"""Ours, for all environments: none needs one of its own, which takes seconds to install. Nor is
everything compiled that an environment has: tests import a small part."""


class Failed(Exception):
    """A command ended with another status than 0: which, and what it said."""


@dataclass(frozen=True)
class Run:
    """One client in one environment; `requirements` None: a Node client."""

    client: str
    requirements: Path | None = None

    @property
    def name(self) -> str:
        kind = "" if self.requirements is None else self.requirements.stem
        return self.client + kind.removeprefix("requirements")

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

    def prepare(self) -> None:
        """Make the environment. Raises Failed."""
        if self.requirements is None:
            _install_node(self.folder)
        else:
            _install_python(self.name, self.requirements)

    def test(self, lender: str) -> str:
        """Run the tests in the environment that was made; what they said. Raises Failed.

        `lender`: where they ask for servers.
        """
        environment = os.environ | {"REALTIME_TTS_CLIENT": self.client, LENDER_VARIABLE: lender}
        environment.setdefault("REALTIME_TTS_PYTHON", sys.executable)
        in_documents = self._in_documents()
        if self.requirements is None:
            tests = sorted(str(path) for path in self.folder.glob("*.test.js"))
            tests += [str(HERE / "snippets.test.js")] if in_documents else []
            # File by file: of several it would run some at once, on the same server.
            command = ["node", "--test", "--test-reporter=spec"]
            return "".join(_call([*command, each], environment, self.folder) for each in tests)
        tests = [str(self.folder)] + ([str(HERE / "test_snippets.py")] if in_documents else [])
        tests += [str(PLUGIN_SUITE)] if self.client.endswith("_plugins") else []
        return _call([str(_python(self.name)), "-m", "pytest", "-q", *tests], environment)


def runs() -> Iterator[Run]:
    """Every client that there is, other versions after the newest."""
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir()):
        for name in ("requirements.txt", "requirements-lowest.txt", "requirements-next.txt"):
            if (folder / name).exists():
                yield Run(folder.name, folder / name)
        if (folder / "package.json").exists():
            yield Run(folder.name)


def _python(name: str) -> Path:
    """The interpreter of an environment."""
    return ENVIRONMENTS / name / "bin" / "python"


def _install_python(name: str, requirements: Path) -> None:
    folder, python = ENVIRONMENTS / name, _python(name)
    inputs = [requirements, COMMON, ROOT / "pyproject.toml"]
    if not _is_fresh(folder / ".installed", inputs):
        shutil.rmtree(folder, ignore_errors=True)
        _call([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        wanted = ["--requirement", str(requirements), "--requirement", str(COMMON)]
        into = [*PIP, "--python", str(python), "install", "--no-compile"]
        _call([*into, *wanted, "--editable", str(ROOT)])
        (folder / ".installed").write_text(_digest(inputs))


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


def _call(command: list[str], environment: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """What it said. Raises Failed, which has that, too."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        raise Failed(f"{Path(command[0]).name} ended with {done.returncode}", done.stdout)
    return done.stdout


def _result(
    run: Run, prepared: Future[None] | None, lenders: queue.SimpleQueue[Lender]
) -> tuple[str, float, str]:
    """Name, seconds of its tests, and what came of them; prints what they said."""
    if prepared is None:
        return run.name, 0.0, f"skipped: {run.missing()}"
    lender, outcome, began = lenders.get(), "passed", time.monotonic()
    try:
        prepared.result()
        began = time.monotonic()
        said = run.test(lender.url)
    except Failed as failure:
        outcome, said = f"FAILED: {failure.args[0]}", failure.args[1]
    finally:
        faults = lender.take_back()
        lenders.put(lender)
    if faults:
        outcome = f"FAILED: it left servers in disorder; its tests: {outcome}"
        said = "\n".join([said, *faults])
    print(f"── {run.name}\n{said}", flush=True)
    return run.name, time.monotonic() - began, outcome


def _test(chosen: list[Run]) -> list[tuple[str, float, str]]:
    """Environments are made one by one, while the tests of others run."""
    with contextlib.ExitStack() as stack:
        maker = stack.enter_context(ThreadPoolExecutor(1))
        testers = stack.enter_context(ThreadPoolExecutor(AT_A_TIME))
        # Whoever is stopped in the middle starts no more and waits for no more than it has to.
        stack.callback(maker.shutdown, wait=False, cancel_futures=True)
        lenders: queue.SimpleQueue[Lender] = queue.SimpleQueue()
        for _ in range(AT_A_TIME):
            lenders.put(stack.enter_context(lending()))
        prepared = [maker.submit(run.prepare) if not run.missing() else None for run in chosen]
        return list(testers.map(_result, chosen, prepared, [lenders] * len(chosen)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clients", nargs="*", help="folders of tests/clients (default: all)")
    asked = parser.parse_args().clients
    known = list(runs())
    unknown = sorted(set(asked) - {run.client for run in known})
    if unknown:
        names = ", ".join(dict.fromkeys(run.client for run in known))
        parser.error(f"no client {unknown[0]!r}; there are: {names}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # stops the servers
    results = _test([run for run in known if not asked or run.client in asked])
    print("── clients")
    for name, seconds, outcome in results:
        print(f"{name:24} {seconds:6.1f} s  {outcome}")
    return 1 if any(outcome.startswith("FAILED") for *_, outcome in results) else 0


if __name__ == "__main__":
    sys.exit(main())
