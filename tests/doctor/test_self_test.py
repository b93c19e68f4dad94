"""The self-test of `realtime-tts doctor`: the server that it starts, and what it refuses."""

from __future__ import annotations

import asyncio
import os
import signal
from urllib.parse import urlsplit

import pytest

from realtime_tts.bench.local_server import http_status
from realtime_tts.cli import main
from realtime_tts.cli.failures import ExitStatus


def test_a_doctor_that_is_ended_leaves_no_server_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[int] = []

    async def ended(url: str, key: str) -> None:
        ports.append(urlsplit(url).port or 0)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)

    monkeypatch.setattr("realtime_tts.doctor.self_test._figures", ended)
    words = ["doctor", "--port", "0", "--start", "--engine fake"]
    assert main(words) == ExitStatus.INTERRUPTED
    assert ports and http_status(ports[0], "/livez") is None


def test_flags_of_a_server_that_is_not_started_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--no-speech", "--start", "--engine fake"]) == ExitStatus.USAGE
    assert "leave --start out" in capsys.readouterr().err
