import asyncio
import contextlib
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from realtime_tts.cli.playback import (
    AfplaySink,
    Player,
    PlayerFailed,
    ProcessSink,
    SoundDeviceSink,
)

SECOND = bytes(48_000)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of players, which stands still."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("realtime_tts.cli.playback.time.monotonic", lambda: clock.now)
    return clock


def test_what_was_heard_is_what_time_has_played_of_what_was_given(time: SimpleNamespace) -> None:
    player = Player()
    assert player.played_seconds == 0.0
    player.note_sent(SECOND * 3)  # three seconds at once
    assert player.played_seconds == 0.0
    time.now += 1.25
    assert player.played_seconds == pytest.approx(1.25)
    time.now += 10.0
    assert player.played_seconds == pytest.approx(3.0)


def test_silence_between_packets_is_not_heard_speech(time: SimpleNamespace) -> None:
    player = Player()
    player.note_sent(SECOND)
    time.now += 5.0
    player.note_sent(SECOND)
    assert player.played_seconds == pytest.approx(1.0)
    time.now += 0.5
    assert player.played_seconds == pytest.approx(1.5)


async def started(command: tuple[str, ...]) -> ProcessSink:
    sink = ProcessSink(command)
    await sink.open()
    return sink


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


async def test_a_player_gets_the_packets_on_its_standard_input(tmp_path: Path) -> None:
    copy = tmp_path / "heard"
    code = f"import sys; open({str(copy)!r}, 'wb').write(sys.stdin.buffer.read())"
    sink = await started(python(code))
    await sink.write(b"ab")
    await sink.write(b"cd")
    await sink.finish()
    assert copy.read_bytes() == b"abcd"


async def test_a_player_that_dies_is_an_error() -> None:
    sink = await started(python("raise SystemExit(3)"))
    with pytest.raises(PlayerFailed, match="exit status 3"):
        for _ in range(1_000):
            await sink.write(SECOND)
    sink = await started(python("import sys; sys.stdin.read(); raise SystemExit(4)"))
    await sink.write(b"ab")
    with pytest.raises(PlayerFailed, match="exit status 4"):
        await sink.finish()


async def test_a_player_that_fails_is_told_with_its_name_and_its_last_words() -> None:
    said = "import sys; print('first\\nno such card\\n', file=sys.stderr); raise SystemExit(3)"
    for code, told in (
        (said, f"{sys.executable} ended with exit status 3: no such card"),
        ("import os; os.kill(os.getpid(), 15)", f"{sys.executable} ended by signal 15"),
    ):
        sink = await started(python(code))
        with pytest.raises(PlayerFailed) as failed:
            await sink.finish()
        assert str(failed.value) == told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('cp "$1" "{copy}"', None),
        ("echo no device >&2; exit 1", "afplay ended with exit status 1: no device"),
        (None, "afplay cannot be started"),
    ],
)
async def test_afplay_is_given_a_file_which_is_gone_afterwards(
    body: str | None, told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, player, temporary = (tmp_path / name for name in ("copy", "afplay", "temporary"))
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    if body is not None:
        player.write_text("#!/bin/sh\n" + body.format(copy=copy))
        player.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    sink = AfplaySink()
    await sink.write(SECOND)
    with pytest.raises(PlayerFailed, match=told) if told else contextlib.nullcontext():
        await sink.finish()
    assert list(temporary.iterdir()) == []
    assert told is not None or copy.stat().st_size > len(SECOND)


async def test_a_player_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PlayerFailed, match="cannot be started"):
        await started(("no-such-player-anywhere",))


async def test_stopping_a_player_is_immediate_and_no_error() -> None:
    sink = await started(python("import time; time.sleep(60)"))
    await sink.write(b"ab")
    sink.stop()
    sink.stop()
    await sink.write(b"cd")
    await sink.finish()
    played = sink.played_seconds
    assert played is not None and played < 5


class Device:
    """A stream of the package `sounddevice`, whose calls wait until it is ended."""

    def __init__(self, **_options: object) -> None:
        self.ended = threading.Event()
        self.why = "Device unavailable"

    def start(self) -> None: ...

    def close(self) -> None: ...

    def write(self, _packet: bytes) -> None:
        assert self.ended.wait(60)
        raise RuntimeError(self.why)  # as PortAudio's own

    stop = start

    def abort(self) -> None:
        self.why = "Stream is stopped"
        self.ended.set()


@pytest.mark.parametrize("stopped", [False, True])
async def test_a_sound_device_that_goes_away_is_told_unless_it_was_stopped(
    stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device()
    module = SimpleNamespace(RawOutputStream=lambda **_options: device)
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    sink = SoundDeviceSink()
    await sink.open()
    writing = asyncio.create_task(sink.write(SECOND))
    await asyncio.sleep(0.05)
    if stopped:
        sink.stop()
        await writing
        await sink.finish()
        return
    device.ended.set()
    with pytest.raises(PlayerFailed, match="sounddevice cannot play: Device unavailable"):
        await writing
