"""Compressed formats, by FFmpeg: mp3, opus in Ogg and WebM, aac, flac.

They need the extra `codecs` (PyAV). A compressed format carries state from packet to packet, so a
`CodecBody` lives as long as its stream: files joined from separately encoded pieces play for a
fraction of their length. The settings keep the delay short: pages, headers and tags that would wait
for more sound are switched off.
"""

from __future__ import annotations

import ctypes
import importlib
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from realtime_tts.audio.formats import SYNTHETIC, AudioFormat


def _codecs() -> Any:
    """Return PyAV, or None if it is missing: `encoders.require` then says which extra to install.

    It is imported now and not when first needed, because that takes a third of a second, for which
    no packet may wait.
    """
    try:
        found = importlib.import_module("av")
    except ImportError:
        return None
    # FFmpeg's filters, which cut a stream into its codec's frames, would start a thread for each
    # core, at most sixteen, in every stream, and leave them idle. PyAV has no option for their
    # number.
    graph = importlib.import_module("av.filter.graph")
    ctypes.CDLL(str(graph.__file__)).av_cpu_force_count(1)
    return found


av = _codecs()


@dataclass(frozen=True, slots=True)
class _Setup:
    """FFmpeg's names and options for a format."""

    container: str
    codec: str
    sample_format: str
    options: dict[str, str] = field(default_factory=dict)
    block_ms: int | None = None
    """Milliseconds of sound in a block, where the codec leaves the choice."""


_SETUPS = {
    # No Xing header: it would have to be written again at the end. No tag: clients expect that the
    # first bytes are sound.
    "mp3": _Setup("mp3", "libmp3lame", "s16p", {"write_xing": "0", "id3v2_version": "0"}),
    # A page each 20 ms; FFmpeg's own pages last a second.
    "ogg": _Setup("ogg", "libopus", "s16", {"page_duration": "20000"}),
    # A cluster each 40 ms, and no index, which would have to be written into the beginning.
    "webm": _Setup("webm", "libopus", "s16", {"cluster_time_limit": "40", "live": "1"}),
    # AAC-LC in frames that need no header of their own.
    "adts": _Setup("adts", "aac", "fltp"),
    # The samples themselves, in about two thirds of the bytes. FFmpeg's own blocks last 96 ms, so
    # that a first frame of 80 would wait for the second; shorter ones cost 1 % more bytes.
    "flac": _Setup("flac", "flac", "s16", block_ms=40),
}


class CodecBody:
    """Encodes samples (s16le at the format's rate) into the format's bytes. Needs `close` at the
    end.

    `position`: samples, at the format's rate, in the bytes returned so far.
    """

    def __init__(self, audio_format: AudioFormat) -> None:
        setup = _SETUPS[audio_format.container]
        self._rate = audio_format.sample_rate
        self._out = _Collected()
        options = {"flush_packets": "1", **setup.options}
        self._container: Any = av.open(self._out, "w", format=setup.container, options=options)
        self._container.metadata["comment"] = SYNTHETIC
        block = {}
        if setup.block_ms is not None:
            block["frame_size"] = str(self._rate * setup.block_ms // 1_000)
        self._stream: Any = self._container.add_stream(setup.codec, self._rate, options=block)
        self._stream.format = setup.sample_format
        self._stream.layout = "mono"
        if audio_format.bit_rate is not None:
            self._stream.bit_rate = audio_format.bit_rate
        self._samples = 0
        self.position = 0

    def encode(self, pcm: bytes) -> bytes:
        if pcm:
            samples = np.frombuffer(pcm, dtype="<i2").reshape(1, -1)
            frame: Any = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
            frame.sample_rate = self._rate
            frame.time_base = Fraction(1, self._rate)
            frame.pts = self._samples
            self._samples += samples.shape[1]
            self._mux(frame)
        return self._out.take()

    def finish(self) -> bytes:
        self._mux(None)
        self.close()
        return self._out.take()

    def close(self) -> None:
        """Free the encoder. Idempotent. Not left to the garbage collector: before version 18, PyAV
        writes to its file while that is collected, and crashes the process."""
        self._container.close()

    def _mux(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            # A codec's first packets may have negative times, those before the sound.
            self.position = max(self.position, packet.pts + packet.duration)
            self._container.mux(packet)


class _Collected:
    """A write-only file without seeking. `take` returns what was written since the last call."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        written = bytes(self._written)
        self._written.clear()
        return written
