"""A server with the demo voice, started from the main environment: the client's has no torch."""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.serving import serving as serving_process

ROOT = Path(__file__).parents[2]

PATIENT = ("--utilisation", "1000", "--queue-seconds", "60", "--max-queue", "64")
"""A machine that also runs other tests is slow; that shall refuse nobody here."""


@dataclass(frozen=True)
class Server:
    """`url` is http(s)://127.0.0.1:PORT, without a slash; `ca_file` is what makes it trusted.

    `log` is what it writes while it runs, `pid` its process; None where somebody else started it.
    """

    url: str
    api_key: str | None = None
    ca_file: Path | None = None
    log: Path | None = None
    pid: int | None = None

    @property
    def websocket_url(self) -> str:
        """ws(s)://127.0.0.1:PORT."""
        return "ws" + self.url.removeprefix("http")

    def metrics(self) -> str:
        """The text of /metrics."""
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        trust = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else None
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
        )
        request = urllib.request.Request(f"{self.url}/metrics", headers=headers)
        with opener.open(request, timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    def value(self, name: str) -> float:
        """A series of /metrics, such as `tts_turns_total{reason="closed"}`; 0 if there is none."""
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.metrics(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def until(self, name: str, expected: float, seconds: float = 30.0) -> None:
        """Return when the series has this value; AssertionError if it never gets it."""
        deadline = time.monotonic() + seconds
        while (found := self.value(name)) != expected:
            assert time.monotonic() < deadline, f"{name} is {found}, expected {expected}"
            time.sleep(0.05)


@contextlib.contextmanager
def serving(*flags: str, api_key: str | None = None) -> Iterator[Server]:
    """`realtime-tts serve` with these flags on a free port, ready; stopped after the block."""
    environment = {key: value for key, value in os.environ.items() if not _is_ours(key)}
    if api_key is not None:
        environment["REALTIME_TTS_API_KEYS"] = api_key
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        words = (*PATIENT, *flags, "--voices-dir", str(Path(folder) / "voices"))
        with serving_process(*words, python=python(), environment=environment) as server:
            trusted = re.search(r"--tls-ca (\S+)", "".join(server.said))
            ca_file = Path(trusted[1]) if trusted else None
            yield Server(server.url, api_key, ca_file, server.log, server.process.pid)


def python() -> str:
    """The interpreter of the main environment, which has the server."""
    found = os.environ.get("REALTIME_TTS_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
    assert Path(found).exists(), f"no {found}: run `make test-clients`, or set REALTIME_TTS_PYTHON"
    return found


def _is_ours(variable: str) -> bool:
    return variable.startswith("REALTIME_TTS_") or variable in ("PYTHONHOME", "VIRTUAL_ENV")
