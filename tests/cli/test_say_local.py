"""`say --local`: a server of its own, in the process of the command."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import wave
from pathlib import Path

import pytest
from rich.console import Console

from realtime_tts.cli import main
from realtime_tts.cli.failures import ExitStatus
from realtime_tts.cli.own_server import with_own_server
from realtime_tts.client import RealtimeTTS
from realtime_tts.errors import HandshakeRefused
from tests.cli.endless import EndlessModel, interrupted_while_loading

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
TONES = ["say", "--local", "--start", "--engine fake"]


def seconds(path: Path) -> float:
    with wave.open(str(path)) as file:
        return file.getnframes() / file.getframerate()


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def test_it_speaks_the_demo_voice_without_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.wav"
    words = ["--voice", "ray", "--speed", "1.2", "--start", "--threads 1 --slots 1"]
    words += ["-o", str(path)]
    assert main(["say", "--local", "The tide.", *words]) == ExitStatus.OK
    assert re.fullmatch(r"[0-9.]+ s of speech · first packet after [0-9]+ ms.*\n", told(capsys))
    assert seconds(path) > 0.5


def test_standard_input_and_formats_are_those_of_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, path = tmp_path / "text", tmp_path / "out.mp3"
    text.write_text("The tide is coming in.")
    monkeypatch.setenv("REALTIME_TTS_URL", "ws://127.0.0.1:1")  # not asked
    monkeypatch.setenv("REALTIME_TTS_PORT", "no port")  # nor read
    with text.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main([*TONES, "-", "-q", "-o", str(path)]) == ExitStatus.OK
    assert told(capsys) == "" and path.stat().st_size > 4_000


@pytest.mark.parametrize("words", [["-o", "none.wav"], ["-", "-o", "none.wav"], ["So.", "-o", "-"]])
def test_closed_streams_read_and_write_nothing(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python has None for them."""
    monkeypatch.chdir(tmp_path)
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, None)
    assert main([*TONES, *words]) == ExitStatus.OK
    for stream in (sys.stdin, sys.stdout):
        assert stream is not None
        stream.close()


def test_nobody_else_can_use_the_server() -> None:
    async def use(url: str, key: str) -> int:
        with pytest.raises(HandshakeRefused) as refused:
            async with RealtimeTTS(url):
                pass
        assert refused.value.status == 401
        async with RealtimeTTS(url, api_key=key) as tts:
            assert "alto" in tts.ready.voices
        return 7

    assert with_own_server(["--engine", "fake"], Console(quiet=True), use) == 7


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["say", "So.", "--device", "cpu"], ExitStatus.USAGE, "add --local"),
        ([*TONES, "So.", "--voice", "nobody"], ExitStatus.USAGE, "alto"),
        (["say", "--local", "--start", "--port 1", "So."], ExitStatus.USAGE, "--port is for a"),
        (["say", "--local", "--start", "--slots 0", "So."], ExitStatus.USAGE, "slots"),
        (["say", "--local", "--model", "/no/folder", "So."], ExitStatus.FAILED, "/no/folder"),
    ],
)
def test_what_cannot_work_is_told_in_a_line(
    words: list[str], status: ExitStatus, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == status
    (line,) = told(capsys).splitlines()
    assert line.startswith("realtime-tts: ") and message in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--url", "ws://127.0.0.1:1"], "--local: not allowed with argument --url"),
        (["--start=--no-such-flag"], "unrecognized arguments: --no-such-flag"),
    ],
)
def test_flags_that_do_not_go_together_are_wrong_usage(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["say", *words, "--local", "So."])
    assert left.value.code == ExitStatus.USAGE and message in told(capsys)


@pytest.mark.parametrize("package", ["uvicorn", "torch"])
def test_without_the_servers_packages_it_says_what_to_install(
    package: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "realtime_tts.server.run", raising=False)
    assert main(["say", "--local", "So."]) == ExitStatus.FAILED
    assert f"{package!r}, which is not installed" in (error := told(capsys))
    assert "pip install -e '.[server]' in a checkout" in error


def test_control_c_does_not_wait_for_a_model_that_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # to rich, a terminal
    status = interrupted_while_loading(["say", "--local", "So."], tmp_path, monkeypatch)
    shown = told(capsys)
    assert status == ExitStatus.INTERRUPTED
    assert "start" in shown and shown.count(HIDE_CURSOR) == shown.count(SHOW_CURSOR) == 1
    assert "\n" not in shown.partition(SHOW_CURSOR)[2], "nothing is told"


def test_a_second_control_c_does_not_wait_for_it_either(tmp_path: Path) -> None:
    model = EndlessModel(tmp_path)
    words = [sys.executable, "-m", "realtime_tts", "say", "--local", "--model", str(tmp_path)]
    process = subprocess.Popen([*words, "So."], stderr=subprocess.PIPE)
    try:
        model.until_it_loads()
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)  # it waits for half a second
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == ExitStatus.INTERRUPTED
    finally:
        model.end()
        process.kill()
        _, said = process.communicate()
    assert said == b""
