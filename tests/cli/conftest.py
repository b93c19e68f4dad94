"""A server with the fake engine in a process of its own, as a user would start it."""

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

KEY = "a-key-for-the-tests"


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.fixture(scope="module")
def fake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL. It lets in whoever has KEY."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = Path(tmp_path_factory.mktemp("server")) / "log"
    command = [sys.executable, "-m", "realtime_tts", "serve", "--engine", "fake"]
    command += ["--port", str(port), "--api-key", KEY]
    command += ["--voices-dir", str(tmp_path_factory.mktemp("voices"))]
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + 60
        while not answers(port):
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield f"ws://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture
def key() -> str:
    return KEY
