"""A server with the demo voice, started from the main environment: the client's has no torch."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_SECONDS = 180.0
STOP_SECONDS = 20.0

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
    command = [python(), "-m", "realtime_tts", "serve", "--port", "0", *PATIENT, *flags]
    environment = {key: value for key, value in os.environ.items() if not _is_ours(key)}
    if api_key is not None:
        environment["REALTIME_TTS_API_KEYS"] = api_key
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        log = Path(folder) / "log"
        command += ["--voices-dir", str(Path(folder) / "voices")]
        with log.open("wb") as errors:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        try:
            welcome = _welcome(process, log)
            found = re.search(r" on (https?://\S+)", welcome)
            trusted = re.search(r"--tls-ca (\S+)", welcome)
            assert found is not None, welcome
            ca_file = Path(trusted[1]) if trusted else None
            yield Server(found[1], api_key, ca_file, log, process.pid)
        finally:
            _stop(process)


def python() -> str:
    """The interpreter of the main environment, which has the server."""
    found = os.environ.get("REALTIME_TTS_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
    assert Path(found).exists(), f"no {found}: run `make test-clients`, or set REALTIME_TTS_PYTHON"
    return found


def _is_ours(variable: str) -> bool:
    return variable.startswith("REALTIME_TTS_") or variable in ("PYTHONHOME", "VIRTUAL_ENV")


def _welcome(process: subprocess.Popen[str], log: Path) -> str:
    """What the server prints when it is ready; it prints nothing more afterwards."""
    said: list[str] = []
    complete = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if "/v1/tts" in line:
                complete.set()
        complete.set()

    threading.Thread(target=read, daemon=True).start()
    in_time = complete.wait(START_SECONDS)
    if not in_time or not any("/v1/tts" in line for line in said):
        raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')}")
    return "".join(said)


def _stop(process: subprocess.Popen[str]) -> None:
    for _ in range(2):  # the first lets speech finish, the second does not
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
            break
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
