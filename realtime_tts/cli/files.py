"""Sinks for the speech of `realtime-tts say` that keep it: files, and standard output."""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from realtime_tts.audio.formats import ENGINE_FORMAT, AudioFormat, audio_format, parse_format
from realtime_tts.audio.wav import WAV_END, wav_header
from realtime_tts.errors import ConfigError, RequestError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_SUFFIXES = {
    ".wav": ("pcm_s16le", "wav"),
    ".pcm": ("pcm_s16le", "raw"),
    ".raw": ("pcm_s16le", "raw"),
    ".mp3": ("mp3", "mp3"),
    ".opus": ("opus", "ogg"),
    ".ogg": ("opus", "ogg"),
    ".webm": ("opus", "webm"),
    ".aac": ("aac", "adts"),
    ".flac": ("flac", "flac"),
}
"""The usual encoding, and the container, by the suffix of a file."""


def format_for(output: str | None, name: str | None) -> AudioFormat:
    """Return the format that `--output` and `--format` give together: of a file, the suffix is the
    container.

    Raises ConfigError for what does not fit together, RequestError for a name of no format.
    """
    if output is None:
        if name is not None:
            raise ConfigError(
                f"--format {name} is for files and pipes: add --output FILE, or --output - "
                "for standard output; players are given 24 kHz PCM"
            )
        return ENGINE_FORMAT
    named = None if name is None else parse_format(name)
    if output == "-":
        return named or ENGINE_FORMAT
    suffix = Path(output).suffix.lower()
    usual, container = _SUFFIXES.get(suffix or ".wav", (None, None))
    if named is None:
        if usual is None:
            raise ConfigError(
                f"--output {output}: {suffix} says no format that is known; known are "
                f"{', '.join(_SUFFIXES)}; a file of another name needs --format"
            )
        return audio_format(usual, container=container)
    if suffix not in _SUFFIXES:
        container = named.container
    try:
        return audio_format(named.encoding, named.sample_rate, container, named.bit_rate)
    except RequestError as error:
        raise ConfigError(f"--format {name} for --output {output}: {error}") from error


class Sink:
    """A receiver of the packets of one speech: a player, a file or a pipe."""

    name: str

    async def open(self) -> None:
        """Prepare for the first packet. Raises PlayerFailed."""

    async def write(self, packet: bytes) -> None:
        """Take one packet; may wait while the sink is full. Raises PlayerFailed."""
        raise NotImplementedError

    async def finish(self) -> None:
        """Return when everything has been played or stored. Raises PlayerFailed."""

    def stop(self) -> None:
        """Fall silent at once. Idempotent."""

    @property
    def played_seconds(self) -> float | None:
        """Seconds of the speech heard so far; None where it is not played."""
        return None


class _NamedFile(io.FileIO):
    """A file whose errors name it: a full disk's does not."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self.name
            raise


class FileSink(Sink):
    """A sink that writes bytes into a file as they arrive."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._file = io.BufferedWriter(_NamedFile(path, "wb"))

    async def write(self, packet: bytes) -> None:
        self._file.write(packet)

    async def finish(self) -> None:
        self.stop()

    def stop(self) -> None:
        self._file.close()


class WavSink(FileSink):
    """A sink for raw samples in a WAV file, whose header gets their number at the end."""

    def __init__(self, path: Path, samples: AudioFormat = ENGINE_FORMAT) -> None:
        super().__init__(path)
        self._samples = samples
        self._data_bytes = 0
        self._file.write(wav_header(samples))

    async def write(self, packet: bytes) -> None:
        self._data_bytes += len(packet)
        await super().write(packet)

    def stop(self) -> None:
        if self._file.closed:
            return
        self._file.write(bytes(self._data_bytes % 2))
        if self._file.seekable():  # a terminal, say, keeps the header of a stream
            self._file.write(WAV_END)
            self._file.seek(0)
            self._file.write(wav_header(self._samples, self._data_bytes, len(WAV_END)))
        super().stop()


class StdoutSink(Sink):
    """A sink that writes each packet to standard output at once: `realtime-tts say … | aplay …`.

    `stop` does nothing: what is in a pipe cannot be taken back.
    """

    name = "standard output"

    async def write(self, packet: bytes) -> None:
        # In a thread: a pipe that is not read must not stop the event loop.
        await asyncio.to_thread(sys.stdout.buffer.write, packet)
        await self.finish()

    async def finish(self) -> None:
        await asyncio.to_thread(sys.stdout.buffer.flush)
