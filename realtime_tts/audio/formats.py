"""AudioFormat: the format that a client wants its sound in, checked and complete.

`parse_format` reads the names that other APIs use (`ulaw_8000`, `mp3_44100_64`); our own protocol
gives the parts to `audio_format`. encoders.py makes the bytes, and packets.py cuts them into
packets. Light: the command line imports it where the server's packages are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from realtime_tts.errors import RequestError

ENGINE_RATE = 24_000
"""Sample rate of the engine's sound in hertz; its samples are signed 16 bit, mono."""

DIGITAL_SOURCE_TYPE = "trainedAlgorithmicMedia"
"""IPTC's term for the source of all sound made here."""
_SOURCE_TYPES = "http://cv.iptc.org/newscodes/digitalsourcetype/"
SYNTHETIC = f"Synthetic speech: {_SOURCE_TYPES}{DIGITAL_SOURCE_TYPE}"
"""The comment in files whose format has room for one."""

PACKET_BYTES = 4_096
"""The largest packet of the engine's own format, in bytes."""

RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
PACKET_MS = (10, 1_000)
"""The shortest and the longest packet, in milliseconds."""
_TELEPHONY_MS = 20  # what a telephone network puts into one RTP packet
_FRAME_MS = 80  # one frame of the engine

# MPEG-1, MPEG-2 and MPEG-2.5 layer III, by their lowest sample rates; kbit/s.
_MP3_KBPS = {
    32_000: (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    16_000: (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    8_000: (8, 16, 24, 32, 40, 48, 56, 64),
}


@dataclass(frozen=True, slots=True)
class _Kind:
    """The choices of one encoding. `sample_bytes`: bytes of a sample that is stored as it is."""

    media_types: dict[str, str]
    """The media type by container; the first is the usual one."""
    sample_rate: int = ENGINE_RATE
    rates: tuple[int, ...] = RATES
    sample_bytes: int | None = None
    bit_rate: int | None = None
    codec: bool = False
    """Whether the encoding needs the extra `codecs`."""


def _samples(sample_bytes: int, raw: str, sample_rate: int = ENGINE_RATE) -> _Kind:
    media_types = {"raw": raw, "wav": "audio/wav"}
    return _Kind(media_types, sample_rate, sample_bytes=sample_bytes)


_KINDS = {
    "pcm_s16le": _samples(2, "audio/pcm"),
    "pcm_f32le": _samples(4, "audio/pcm"),
    "pcm_mulaw": _samples(1, "audio/basic", 8_000),
    "pcm_alaw": _samples(1, "audio/x-alaw-basic", 8_000),
    "mp3": _Kind({"mp3": "audio/mpeg"}, bit_rate=128_000, codec=True),
    "opus": _Kind(
        {"ogg": "audio/ogg", "webm": "audio/webm"},
        rates=(8_000, 12_000, 16_000, 24_000, 48_000),
        bit_rate=48_000,
        codec=True,
    ),
    "aac": _Kind({"adts": "audio/aac"}, bit_rate=96_000, codec=True),
    "flac": _Kind({"flac": "audio/flac"}, codec=True),
}
ENCODINGS = tuple(_KINDS)
"""Every encoding that is known, whether or not this installation can make it."""
MEDIA_TYPES = sorted({each for kind in _KINDS.values() for each in kind.media_types.values()})
"""The media types of all encodings, for HTTP."""

# Encoding and container by the names that other APIs use.
_NAMES: dict[str, tuple[str, str | None]] = {
    **{name: (name, None) for name in _KINDS},
    "pcm": ("pcm_s16le", None),
    "s16le": ("pcm_s16le", None),
    "linear16": ("pcm_s16le", None),
    "f32le": ("pcm_f32le", None),
    "ulaw": ("pcm_mulaw", None),
    "mulaw": ("pcm_mulaw", None),
    "alaw": ("pcm_alaw", None),
    "wav": ("pcm_s16le", "wav"),
    "ogg": ("opus", "ogg"),
    "webm": ("opus", "webm"),
}
_NAME = re.compile(r"(?P<kind>[a-z0-9_]+?)(?:_(?P<rate>\d{4,5})(?:_(?P<kbps>\d{1,3}))?)?")
_SHOWN_NAMES = "mp3, opus, aac, flac, pcm, wav, webm, pcm_f32le, ulaw, alaw"


_Name = Annotated[str, Meta(min_length=1, max_length=128)]
_Hertz = Annotated[int, Meta(ge=1, le=1_000_000, description="a whole number of hertz")]
_BitRate = Annotated[
    int, Meta(ge=1, le=10_000_000, description="a whole number of bits per second")
]
_PacketMs = Annotated[
    int,
    Meta(
        ge=1,
        le=60_000,
        description=f"a whole number of milliseconds from {PACKET_MS[0]} to {PACKET_MS[1]}",
    ),
]


class AudioFormat(msgspec.Struct, frozen=True):
    """A format of sound. `audio_format` and `parse_format` make it, and check it.

    `bit_rate` is in bits a second, None where samples are stored. `packet_ms` is how much sound a
    packet of raw samples holds; None: 4,096 bytes in the engine's own format, and whatever the
    encoder makes where there is a container.
    """

    encoding: _Name = "pcm_s16le"
    sample_rate: _Hertz = ENGINE_RATE
    container: _Name = "raw"
    bit_rate: _BitRate | None = None
    packet_ms: _PacketMs | None = None

    @property
    def media_type(self) -> str:
        return _KINDS[self.encoding].media_types[self.container]

    @property
    def sample_bytes(self) -> int | None:
        """Bytes of one sample; None for a compressed encoding."""
        return _KINDS[self.encoding].sample_bytes

    @property
    def packet_bytes(self) -> int | None:
        """Bytes of the largest packet, whole samples; None where the encoder decides."""
        if self.container != "raw":
            return None
        if self.packet_ms is None:
            return PACKET_BYTES
        assert self.sample_bytes is not None, "only samples are raw"
        return self.sample_rate * self.packet_ms // 1_000 * self.sample_bytes

    @property
    def needs_codec(self) -> bool:
        """Whether the format needs the extra `codecs`."""
        return _KINDS[self.encoding].codec


ENGINE_FORMAT = AudioFormat()
"""The engine's own format, in packets of 4,096 bytes."""


def audio_format(
    encoding: str = "pcm_s16le",
    sample_rate: int | None = None,
    container: str | None = None,
    bit_rate: int | None = None,
    packet_ms: int | None = None,
) -> AudioFormat:
    """Return the format with these parts; None leaves a part to the encoding.

    Raises RequestError, which says what is possible instead.
    """
    kind = _KINDS.get(encoding)
    if kind is None:
        raise RequestError(f"there is no encoding {_shown(encoding)}; there are {_list(_KINDS)}")
    rate = kind.sample_rate if sample_rate is None else sample_rate
    if rate not in kind.rates:
        raise RequestError(f"{encoding} has no sample rate {rate}; it has {_list(kind.rates)}")
    if container is None:
        container = next(iter(kind.media_types))
    if container not in kind.media_types:
        raise RequestError(
            f"{encoding} does not go into the container {_shown(container)}; "
            f"it goes into {_list(kind.media_types)}"
        )
    return AudioFormat(
        encoding,
        rate,
        container,
        _bit_rate(encoding, rate, bit_rate),
        _packet_ms(encoding, rate, container, packet_ms),
    )


def parse_format(name: str) -> AudioFormat:
    """Return the format of an API's name: an encoding, then perhaps hertz, then perhaps kbit/s.

    Names are such as `pcm`, `pcm_16000`, `pcm_f32le_44100`, `ulaw_8000`, `wav_16000`,
    `mp3_44100_64`, `opus_48000_32` or `webm`. Raises RequestError.
    """
    parts = _NAME.fullmatch(name)
    if parts is None or parts["kind"] not in _NAMES:
        raise RequestError(
            f"there is no format {_shown(name)}; there are {_SHOWN_NAMES}, "
            "also with hertz and kbit/s, as in ulaw_8000 or mp3_44100_64"
        )
    encoding, container = _NAMES[parts["kind"]]
    rate = int(parts["rate"]) if parts["rate"] else None
    bit_rate = int(parts["kbps"]) * 1_000 if parts["kbps"] else None
    return audio_format(encoding, rate, container, bit_rate)


def _bit_rate(encoding: str, rate: int, asked: int | None) -> int | None:
    usual = _KINDS[encoding].bit_rate
    if usual is None:
        if asked is not None:
            raise RequestError(f"{encoding} has no bit rate to choose; leave it out")
        return None
    if encoding == "mp3":
        kbps = next(each for lowest, each in _MP3_KBPS.items() if rate >= lowest)
        if asked is not None and asked not in (1_000 * each for each in kbps):
            raise RequestError(
                f"mp3 at {rate} Hz has no bit rate {asked}; in kbit/s it has {_list(kbps)}"
            )
        return min(usual, 1_000 * kbps[-1]) if asked is None else asked
    lowest, highest = (6_000, 256_000) if encoding == "opus" else (8_000, 6 * rate)
    if asked is not None and not lowest <= asked <= highest:
        raise RequestError(
            f"{encoding} at {rate} Hz takes a bit rate of {lowest} to {highest}, found {asked}"
        )
    return min(usual, highest) if asked is None else asked


def _packet_ms(encoding: str, rate: int, container: str, asked: int | None) -> int | None:
    if container != "raw":
        if asked is not None:
            raise RequestError(
                f"packets of {encoding} in {container} are as long as the encoder makes them; "
                "leave packet_ms out"
            )
        return None
    if asked is not None:
        shortest, longest = PACKET_MS
        if not shortest <= asked <= longest:
            raise RequestError(f"packet_ms must be {shortest} to {longest}, found {asked}")
        return asked
    if (encoding, rate) == ("pcm_s16le", ENGINE_RATE):
        return None
    return _TELEPHONY_MS if encoding in ("pcm_mulaw", "pcm_alaw") else _FRAME_MS


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
