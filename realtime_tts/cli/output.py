"""Chooses where speech goes, and falls back when a player turns out not to work."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.audio.wav import wav_header
from realtime_tts.cli.files import FileSink, Sink, StdoutSink, WavSink
from realtime_tts.cli.playback import (
    AfplaySink,
    PlayerFailed,
    ProcessSink,
    SoundDeviceSink,
    find_players,
)

FALLBACK_FILE = Path("speech.wav")
_HEARD_ENOUGH = 1.0
"""Seconds heard after which a player that fails is not replaced, as another begins at the start."""

SinkMaker = Callable[[], Sink]


class Output:
    """Writes packets to the first sink that works; the sink is opened with the first packet.

    `on_failure` is called with a message for each player that did not work.
    """

    def __init__(self, makers: Iterator[SinkMaker], on_failure: Callable[[str], None]) -> None:
        self._makers = makers
        self._on_failure = on_failure
        self._packets: list[bytes] = []
        self._sink: Sink | None = None
        self._stopped = False
        self.failures = 0
        """Number of players that did not work."""

    @property
    def name(self) -> str | None:
        """The name of the sink that has the speech; None if there is none."""
        return self._sink.name if self._sink else None

    @property
    def played_seconds(self) -> float | None:
        """Seconds of speech heard so far; None where it is not played, or before it begins."""
        return self._sink.played_seconds if self._sink else None

    async def write(self, packet: bytes) -> None:
        """Take a packet. Raises PlayerFailed when a player fails in the middle."""
        if self._stopped:
            return
        if self._sink is None:
            self._packets.append(packet)
            await self._open()
            return
        if self._replaceable:
            self._packets.append(packet)
        else:
            self._packets.clear()  # hours of speech must not stay in memory
        try:
            await self._sink.write(packet)
        except PlayerFailed as error:
            self._give_up(error)
            await self._open()

    async def finish(self) -> None:
        """Return when all was heard or stored. Raises PlayerFailed, see `write`."""
        while self._sink is not None:
            try:
                await self._sink.finish()
                return
            except PlayerFailed as error:
                self._give_up(error)
                await self._open()

    def stop(self) -> None:
        """Fall silent at once. What is still written is dropped."""
        self._stopped = True
        if self._sink is not None:
            self._sink.stop()

    async def _open(self) -> None:
        """Open the next sink that takes all packets so far."""
        for make in self._makers:
            try:
                sink = make()
                await sink.open()
                self._sink = sink
                if self._stopped:
                    self._sink.stop()
                    return
                for packet in self._packets:
                    await self._sink.write(packet)
                return
            except PlayerFailed as error:
                self._give_up(error)
        raise PlayerFailed("no player works, and no file could be written")

    @property
    def _replaceable(self) -> bool:
        """Whether another sink could still take over from the start; files never need that."""
        played = self.played_seconds
        return played is not None and played <= _HEARD_ENOUGH

    def _give_up(self, error: PlayerFailed) -> None:
        if self._sink is not None and not self._replaceable:
            raise error
        self._sink = None
        self.failures += 1
        self._on_failure(str(error))


def sink_makers(output: str | None, audio_format: AudioFormat) -> Iterator[SinkMaker]:
    """Yield the sinks to try for `--output`: a path, `-`, or None for players and lastly a file.

    A WAV file is given raw samples; everything else is given the bytes that it will hold.
    """
    if output == "-":
        yield StdoutSink
    elif output is not None:
        yield partial(_file_sink, Path(output), audio_format)
    else:
        if find_spec("sounddevice") is not None:
            yield SoundDeviceSink
        for command in find_players():
            yield partial(ProcessSink, command)
        if sys.platform == "darwin":
            yield AfplaySink
        yield partial(WavSink, FALLBACK_FILE)


def _file_sink(path: Path, audio_format: AudioFormat) -> Sink:
    wav = audio_format.container == "wav"
    if path.is_fifo():
        return PipeSink(path, wav_header(audio_format) if wav else b"")
    return WavSink(path, audio_format) if wav else FileSink(path)


_LOOK_AGAIN_SECONDS = 0.05


class PipeSink(Sink):
    """A sink that writes bytes into a named pipe as they arrive; `header` goes before the first.

    Its reader may open it late, read slowly, or never open it. Opening and writing wait for that
    without blocking the event loop, so that `stop` takes effect at any time.
    """

    def __init__(self, path: Path, header: bytes = b"") -> None:
        self.name = str(path)
        self._path = path
        self._header = header
        self._descriptor: int | None = None
        self._writing = False
        self._stopped = False
        self._wake = asyncio.Event()  # there is room in the pipe, or nothing to wait for any more

    async def write(self, packet: bytes) -> None:
        """Write a packet. Raises OSError if the pipe cannot be opened, or its reader has gone."""
        left, self._header = memoryview(self._header + packet), b""
        self._writing = True
        try:
            while left and not self._stopped:
                left = left[await self._write_some(left) :]
        finally:
            self._writing = False
            if self._stopped:
                self._close()

    async def finish(self) -> None:
        self._close()

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()
        if not self._writing:
            self._close()

    async def _write_some(self, data: memoryview) -> int:
        """Write as much as fits, or wait until something does. Returns the bytes written."""
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # the error while the pipe has no reader
                    raise
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _LOOK_AGAIN_SECONDS)
                return 0
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            await self._room(self._descriptor)
            return 0

    async def _room(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        self._wake.clear()
        loop.add_writer(descriptor, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            loop.remove_writer(descriptor)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
