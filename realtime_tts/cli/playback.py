"""Players for the speech of `realtime-tts say`.

A sink takes packets as they arrive; those that keep speech are in files.py. Players get raw PCM on
their standard input, so the first packet is heard while the rest is still being made.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Self

from realtime_tts.audio.formats import ENGINE_RATE
from realtime_tts.cli.files import Sink, WavSink
from realtime_tts.errors import RealtimeTTSError
from tts_scheduler.playback import Playback

PLAYER_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("aplay", "-q", "-t", "raw", "-f", "S16_LE", "-r", "24000", "-c", "1", "-"),
    ("paplay", "--raw", "--format=s16le", "--rate=24000", "--channels=1"),
    ("pw-cat", "-p", "--format", "s16", "--rate", "24000", "--channels", "1", "-"),
    ("play", "-q", "-t", "raw", "-r", "24000", "-e", "signed", "-b", "16", "-c", "1", "-"),
    # ffplay takes raw PCM as mono by default; its flag for that changed its name.
    tuple("ffplay -loglevel error -nodisp -autoexit -f s16le -ar 24000 -i -".split()),
)
"""Players that read raw 24 kHz s16le mono from standard input, in order of preference."""


class PlayerFailed(RealtimeTTSError, code="player_failed"):
    """A player was there but would not play, for example without a sound card."""


class Player(Sink):
    """A sink that is listened to: what was heard follows from the packets written and the time."""

    def __init__(self) -> None:
        self._playback = Playback(ENGINE_RATE)
        self._stopped = False

    def note_sent(self, packet: bytes) -> None:
        """Note that a packet goes to the player."""
        self._playback.sent(len(packet) // 2, time.monotonic())

    @property
    def played_seconds(self) -> float | None:
        return self._playback.sent_seconds - self._playback.lead(time.monotonic())


class _Program:
    """A player's process. Made by `start`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, said: IO[bytes]) -> None:
        self.process = process
        self._name, self._said, self._stopped = name, said, False

    @classmethod
    async def start(cls, command: Sequence[str], stdin: int) -> Self:
        """Start the program. Raises PlayerFailed."""
        said = tempfile.TemporaryFile()
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=stdin,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=said,
                # Ctrl-C in the terminal must reach us alone: we report to the server what was
                # heard.
                start_new_session=True,
            )
        except OSError as error:
            said.close()
            raise PlayerFailed(f"{command[0]} cannot be started: {error}") from error
        return cls(command[0], process, said)

    async def ended(self) -> None:
        """Wait until the program ends. Raises PlayerFailed, with its last line, if it failed."""
        status = await self.process.wait()
        if status == 0 or self._stopped:
            self._said.close()
            return
        with self._said:
            self._said.seek(0)
            lines = self._said.read().decode(errors="replace").split("\n")
        last = next((": " + line.strip() for line in reversed(lines) if line.strip()), "")
        how = f"with exit status {status}" if status > 0 else f"by signal {-status}"
        raise PlayerFailed(f"{self._name} ended {how}{last}")

    def stop(self) -> None:
        """End the program at once. Idempotent."""
        self._stopped = True
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()


class ProcessSink(Player):
    """A player program that reads raw PCM from its standard input."""

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__()
        self.name = command[0]
        self._command = command

    async def open(self) -> None:
        self._program = await _Program.start(self._command, stdin=asyncio.subprocess.PIPE)
        assert self._program.process.stdin is not None, "the player was started with a pipe"
        self._pipe = self._program.process.stdin

    async def write(self, packet: bytes) -> None:
        if self._stopped:
            return
        self._pipe.write(packet)
        self.note_sent(packet)
        try:
            await self._pipe.drain()
        except (BrokenPipeError, ConnectionResetError):
            await self._program.ended()

    async def finish(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._pipe.close()
            await self._pipe.wait_closed()
        await self._program.ended()

    def stop(self) -> None:
        self._stopped = True
        self._program.stop()


class SoundDeviceSink(Player):
    """A sink that plays with the `sounddevice` package: the least delay of all players."""

    name = "sounddevice"

    async def open(self) -> None:
        try:
            sounddevice = import_module("sounddevice")
            self._stream = sounddevice.RawOutputStream(
                samplerate=ENGINE_RATE, channels=1, dtype="int16", latency="low"
            )
            self._stream.start()
        except Exception as error:
            # PortAudio raises its own kinds for a missing library, device or rate.
            raise _cannot_play(error) from error

    async def write(self, packet: bytes) -> None:
        if not self._stopped:
            self.note_sent(packet)
            await self._unless_stopped(self._stream.write, packet)

    async def finish(self) -> None:
        if not self._stopped:
            await self._unless_stopped(self._stream.stop)  # waits until all of it was played
        self._stream.close()

    async def _unless_stopped(self, call: Callable[..., object], *arguments: object) -> None:
        """Call in a thread. That `stop` breaks it off is no error."""
        try:
            await asyncio.to_thread(call, *arguments)
        except Exception as error:
            if not self._stopped:
                raise _cannot_play(error) from error

    def stop(self) -> None:
        self._stopped = True
        self._stream.abort()


def _cannot_play(error: Exception) -> PlayerFailed:
    return PlayerFailed(f"sounddevice cannot play: {error}")


class AfplaySink(Sink):
    """A sink for macOS's own player, which reads files only: it begins when speech ends."""

    name = "afplay"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="realtime-tts-")
        self._path = Path(self._folder.name) / "speech.wav"
        self._wav = WavSink(self._path)
        self._program: _Program | None = None
        self._started: float | None = None

    async def write(self, packet: bytes) -> None:
        await self._wav.write(packet)

    async def finish(self) -> None:
        await self._wav.finish()
        try:
            command = (self.name, str(self._path))
            self._program = await _Program.start(command, stdin=asyncio.subprocess.DEVNULL)
            self._started = time.monotonic()
            await self._program.ended()
        finally:
            self._folder.cleanup()

    def stop(self) -> None:
        self._wav.stop()
        if self._program is not None:
            self._program.stop()

    @property
    def played_seconds(self) -> float | None:
        return 0.0 if self._started is None else time.monotonic() - self._started


def find_players() -> list[tuple[str, ...]]:
    """Return the player commands this machine has, best first."""
    return [command for command in PLAYER_COMMANDS if shutil.which(command[0])]
