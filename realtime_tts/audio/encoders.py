"""Encoders: the PCM of one stream in, bytes of another format out.

One encoder lives as long as its stream: a compressed format carries state from packet to packet,
and files glued together from pieces play for a fraction of their length. WAV and PCM need nothing;
the others come with the extra `codecs` (PyAV), and their settings are chosen so that what goes in
soon comes out: pages, headers and tags that would wait for more sound are switched off.
"""

from __future__ import annotations

import importlib
import struct
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.errors import RequestError


def _codecs() -> Any:
    """PyAV, or None: then `encoder_class` says to whoever asks that the extra is missing.

    Imported now and not when first needed: it takes a third of a second, and nobody's packets
    may wait for that.
    """
    try:
        return importlib.import_module("av")
    except ImportError:
        return None


av = _codecs()
CODECS_EXTRA = "realtime-tts-server[codecs]"
_UNKNOWN = 0xFFFFFFFF  # a length in a header that is written before the sound is


class Encoder(Protocol):
    """`encode` takes whole samples (s16le, mono) and gives what can be sent, maybe nothing yet.

    `finish` gives the rest; nothing but `close` may follow it. Call `close` in any case.
    """

    media_type: ClassVar[str]

    def __init__(self, sample_rate: int) -> None: ...

    def encode(self, pcm: bytes) -> bytes: ...

    def finish(self) -> bytes: ...

    def close(self) -> None: ...


class PcmEncoder:
    """The samples as they are: signed 16 bit, little-endian, mono, without a header."""

    media_type: ClassVar[str] = "audio/pcm"

    def __init__(self, sample_rate: int) -> None:
        pass

    def encode(self, pcm: bytes) -> bytes:
        return pcm

    def finish(self) -> bytes:
        return b""

    def close(self) -> None:
        pass


class WavEncoder:
    """A WAV header of unknown length before the first samples, then PCM.

    Players take the lengths 0xFFFFFFFF as "until the end"; that is how streams of WAV are sent.
    """

    media_type: ClassVar[str] = "audio/wav"

    def __init__(self, sample_rate: int) -> None:
        self._header = _wav_header(sample_rate)

    def encode(self, pcm: bytes) -> bytes:
        header, self._header = self._header, b""
        return header + pcm

    def finish(self) -> bytes:
        return self.encode(b"")

    def close(self) -> None:
        pass


class _AvEncoder:
    """What the formats of FFmpeg share. Subclasses name container, codec and their options."""

    media_type: ClassVar[str]
    container: ClassVar[str]
    codec: ClassVar[str]
    sample_format: ClassVar[str]
    bit_rate: ClassVar[int | None] = None
    options: ClassVar[dict[str, str]] = {}

    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self._out = _Collected()
        options = {"flush_packets": "1", **self.options}
        self._container: Any = av.open(self._out, "w", format=self.container, options=options)
        self._stream: Any = self._container.add_stream(self.codec, rate=sample_rate)
        self._stream.format = self.sample_format
        self._stream.layout = "mono"
        if self.bit_rate is not None:
            self._stream.bit_rate = self.bit_rate
        self._samples = 0

    def encode(self, pcm: bytes) -> bytes:
        assert len(pcm) % BYTES_PER_SAMPLE == 0, f"half a sample: {len(pcm)} bytes"
        if pcm:
            samples = np.frombuffer(pcm, dtype="<i2").reshape(1, -1)
            frame: Any = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
            frame.sample_rate = self._sample_rate
            frame.time_base = Fraction(1, self._sample_rate)
            frame.pts = self._samples
            self._samples += samples.shape[1]
            self._container.mux(self._stream.encode(frame))
        return self._out.take()

    def finish(self) -> bytes:
        self._container.mux(self._stream.encode(None))
        self.close()
        return self._out.take()

    def close(self) -> None:
        """Idempotent. Not left to the garbage collector: before version 18, PyAV writes to its
        file while that is collected, and takes the process with it."""
        self._container.close()


class Mp3Encoder(_AvEncoder):
    """MPEG layer III. No Xing header: it would have to be written again at the end."""

    media_type = "audio/mpeg"
    container, codec, sample_format = "mp3", "libmp3lame", "s16p"
    bit_rate = 128_000
    options: ClassVar[dict[str, str]] = {"write_xing": "0", "id3v2_version": "0"}


class OpusEncoder(_AvEncoder):
    """Opus in Ogg, a page each 20 ms; FFmpeg's own pages last a second."""

    media_type = "audio/ogg"
    container, codec, sample_format = "ogg", "libopus", "s16"
    bit_rate = 48_000
    options: ClassVar[dict[str, str]] = {"page_duration": "20000"}


class AacEncoder(_AvEncoder):
    """AAC-LC as ADTS frames, which need no header of their own."""

    media_type = "audio/aac"
    container, codec, sample_format = "adts", "aac", "fltp"
    bit_rate = 96_000


class FlacEncoder(_AvEncoder):
    """FLAC: the samples themselves, in about half the bytes."""

    media_type = "audio/flac"
    container, codec, sample_format = "flac", "flac", "s16"


class _Collected:
    """A file that only takes: what was written since the last `take`. FFmpeg cannot seek in it."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        written = bytes(self._written)
        self._written.clear()
        return written


_PLAIN: dict[str, type[Encoder]] = {"pcm": PcmEncoder, "wav": WavEncoder}
_CODECS: dict[str, type[Encoder]] = {
    "mp3": Mp3Encoder,
    "opus": OpusEncoder,
    "aac": AacEncoder,
    "flac": FlacEncoder,
}
FORMATS = (*_CODECS, *_PLAIN)
"""Every format there is, whether or not this installation can make it."""


def available() -> tuple[str, ...]:
    """The formats that this installation can make."""
    return FORMATS if av is not None else tuple(_PLAIN)


def encoder_class(name: str) -> type[Encoder]:
    """The encoder of a format. RequestError says which there are, and what to install."""
    if name not in FORMATS:
        raise RequestError(f"unknown format {name!r}; there are {', '.join(FORMATS)}")
    if name not in available():
        raise RequestError(
            f"this server cannot make {name}: it has {' and '.join(available())}; "
            f"for {', '.join(_CODECS)} install `pip install '{CODECS_EXTRA}'` beside the server"
        )
    return _PLAIN.get(name) or _CODECS[name]


def _wav_header(sample_rate: int) -> bytes:
    fields = (1, 1, sample_rate, sample_rate * BYTES_PER_SAMPLE, BYTES_PER_SAMPLE, 16)
    fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, *fields)
    riff = struct.pack("<4sI4s", b"RIFF", _UNKNOWN, b"WAVE")
    return riff + fmt + struct.pack("<4sI", b"data", _UNKNOWN)
