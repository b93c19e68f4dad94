"""`realtime-tts serve` in a process of its own, as a user starts it.

The environments of clients (tests/clients) have few packages: nothing but Python is needed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
START_SECONDS = 180.0
STOP_SECONDS = 20.0


def serve_command(*flags: str, python: str = sys.executable) -> list[str]:
    """On a free port, unless the flags say which."""
    return [python, "-m", "realtime_tts", "serve", "--port", "0", *flags]


class Serving:
    """A server that has been started. `said`: the lines on its standard output so far. `log`: the
    file of its standard error."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.said: list[str] = []
        self.log = log
        self._welcome = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def url(self) -> str:
        """http(s)://HOST:PORT."""
        found = re.search(r"https?://\S+:\d+", "".join(self.said))
        assert found is not None, self.said
        return found[0]

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    @property
    def websocket_url(self) -> str:
        """Of the native protocol."""
        return f"ws{self.url.removeprefix('http')}/v1/tts"

    def records(self) -> list[dict[str, Any]]:
        """The log so far: a record for each line."""
        lines = self.log.read_text("utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_ready(self) -> None:
        """Return when it takes turns: it says then where it can be found."""
        self._welcome.wait(START_SECONDS)
        if not any("/v1/tts" in line for line in self.said):
            raise AssertionError(f"it did not start:\n{self.log.read_text(errors='replace')}")

    def stop(self) -> int:
        """End it as an operator does, who lets nobody finish; returns its exit status."""
        for patience in (1.0, STOP_SECONDS):  # the first signal lets turns finish, the second not
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                break
        return self.killed()

    def killed(self) -> int:
        """End it at once, if it has not ended; returns its exit status."""
        self.process.kill()
        status = self.process.wait()
        self._reader.join()
        return status

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.said.append(line)
                if "/v1/tts" in line:
                    self._welcome.set()
        self._welcome.set()


@contextlib.contextmanager
def serving(
    *flags: str, python: str = sys.executable, environment: Mapping[str, str] | None = None
) -> Iterator[Serving]:
    """A server with these flags, which takes turns; it is stopped after the block."""
    with tempfile.TemporaryDirectory(prefix="serving-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                serve_command(*flags, python=python),
                cwd=ROOT,
                env=environment,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        server = Serving(process, log)
        try:
            server.wait_ready()
            yield server
        finally:
            server.stop()


@contextlib.asynccontextmanager
async def serving_beside(*flags: str, **options: Any) -> AsyncIterator[Serving]:
    """The same, and the event loop goes on while the server starts and stops."""
    context = serving(*flags, **options)
    server = await asyncio.to_thread(context.__enter__)
    try:
        yield server
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)
