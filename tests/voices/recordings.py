"""Recordings made by code: good ones in every format, and hostile ones with what each deserves."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import soundfile
from numpy.typing import NDArray


def voice(seconds: float = 2.0, rate: int = 24_000, channels: int = 1) -> NDArray[np.float32]:
    """Something like a vowel: a few harmonics that come and go."""
    time = np.arange(round(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 8))
    mono = (0.2 * tone * (1 + 0.5 * np.sin(2 * np.pi * 3 * time))).astype(np.float32)
    return mono if channels == 1 else np.stack([mono] * channels, axis=1)


def encoded(
    samples: NDArray[np.float32], rate: int = 24_000, kind: str = "WAV", subtype: str | None = None
) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def with_data_size(wav: bytes, size: int) -> bytes:
    at = wav.index(b"data") + 4
    return wav[:at] + struct.pack("<I", size) + wav[at + 4 :]


def unfilled(wav: bytes, riff_size: int) -> bytes:
    """A WAV as it is left by a program that cannot go back to its header."""
    return wav[:4] + struct.pack("<I", riff_size) + with_data_size(wav, 0)[8:]


def flac_claiming(samples: int) -> bytes:
    """A FLAC whose header claims so many samples (36 bits at most)."""
    flac = bytearray(encoded(voice(), kind="FLAC"))
    at = 4 + 4 + 10  # magic, block header, sizes of blocks and frames
    packed = int.from_bytes(flac[at : at + 8], "big")
    packed = (packed >> 36 << 36) | samples
    flac[at : at + 8] = packed.to_bytes(8, "big")
    return bytes(flac)


def with_one(odd: float) -> bytes:
    """A recording one sample of which is odd."""
    samples = voice()
    samples[1000] = odd
    return encoded(samples, subtype="FLOAT")


def opposite() -> bytes:
    """Two channels that leave nothing when they are mixed."""
    return encoded(np.stack([voice(), -voice()], axis=1))


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def long_flac() -> bytes:
    """An hour of zeros: 100 times smaller than what it decodes to."""
    return encoded(np.zeros(3_600 * 8_000, np.int16), 8_000, kind="FLAC")


def noise(count: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(count)


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """`data` with some bytes changed, removed or doubled."""
    dice = random.Random(seed)
    for _ in range(count):
        mutant = bytearray(data)
        for _ in range(dice.randint(1, 20)):
            at = dice.randrange(len(mutant)) if dice.random() < 0.5 else dice.randrange(64)
            kind = dice.random()
            if kind < 0.8:
                mutant[at] = dice.randrange(256)
            elif kind < 0.9:
                del mutant[at : at + dice.randint(1, 50)]
            else:
                mutant[at:at] = mutant[at : at + 50]
        yield bytes(mutant)


GOOD: dict[str, Callable[[], bytes]] = {
    "wav": lambda: encoded(voice()),
    "wav float": lambda: encoded(voice(), subtype="FLOAT"),
    "wav 24 bit 8 kHz": lambda: encoded(voice(rate=8_000), 8_000, subtype="PCM_24"),
    "wav 192 kHz": lambda: encoded(voice(1.5, 192_000), 192_000),
    "wav 11025 Hz, 6 channels": lambda: encoded(voice(rate=11_025, channels=6), 11_025),
    "wav louder than full scale": lambda: encoded(voice() * 20, subtype="FLOAT"),
    "wav with 64 bits for its sizes": lambda: encoded(voice(), kind="RF64"),
    "wav from FFmpeg through a pipe": lambda: with_data_size(encoded(voice()), 0xFFFFFFFF),
    "wav from SoX through a pipe": lambda: with_data_size(encoded(voice()), 0x7FFFF000),
    "wav from arecord through a pipe": lambda: with_data_size(encoded(voice()), 0x80000000),
    "wav whose sizes were never filled in": lambda: unfilled(encoded(voice()), 0),
    "wav whose size is its header's": lambda: unfilled(encoded(voice()), 36),
    "flac": lambda: encoded(voice(), kind="FLAC"),
    "flac from a pipe": lambda: flac_claiming(0),
    "mp3": lambda: encoded(voice(3.0, 44_100), 44_100, kind="MP3"),
    "ogg vorbis": lambda: encoded(voice(rate=48_000), 48_000, kind="OGG", subtype="VORBIS"),
    "ogg opus": lambda: encoded(voice(rate=48_000), 48_000, kind="OGG", subtype="OPUS"),
}
"""What must be taken: every format, odd rates, odd channels; each encoded when it is asked for."""


@dataclass(frozen=True)
class Hostile:
    """`status` and a word of the message that the upload has to be answered with."""

    name: str
    make: Callable[[], bytes]
    status: int
    says: str


HOSTILE = (
    Hostile("empty", lambda: b"", 422, "empty"),
    Hostile("one byte", lambda: b"\xff", 415, "WAV, FLAC, OGG or MP3"),
    Hostile("text", lambda: b"this is not audio at all" * 10, 415, "none of them"),
    Hostile("png", lambda: b"\x89PNG\r\n\x1a\n" + bytes(1000), 415, "none of them"),
    Hostile("aiff", lambda: encoded(voice(), kind="AIFF"), 415, "none of them"),
    Hostile("aac", lambda: b"\xff\xf1\x58\x40" + noise(5000), 415, "none of them"),
    Hostile("zip", lambda: b"PK\x03\x04" + bytes(1000), 415, "none of them"),
    Hostile("noise behind a flac's magic", lambda: b"fLaC" + noise(5000), 422, "decoded"),
    Hostile("noise behind an ogg's magic", lambda: b"OggS" + noise(5000), 422, "decoded"),
    Hostile("noise that might be mp3", lambda: b"\xff\xfb" + noise(5000), 422, "recording"),
    Hostile("wav header alone", lambda: encoded(voice())[:44], 422, "truncated"),
    Hostile("wav without samples", lambda: encoded(np.zeros(0, np.float32)), 422, "at least 1 s"),
    Hostile("one sample", lambda: encoded(voice()[:1]), 422, "at least 1 s"),
    Hostile("half a second", lambda: encoded(voice(0.5)), 422, "at least 1 s"),
    Hostile("silent", lambda: encoded(voice() * 1e-5), 422, "silent"),
    Hostile("zeros", lambda: encoded(np.zeros(48_000, np.float32)), 422, "silent"),
    Hostile("channels in opposite phase", opposite, 422, "cancel"),
    Hostile("NaN", lambda: with_one(np.nan), 422, "NaN"),
    Hostile("infinity", lambda: with_one(np.inf), 422, "NaN"),
    Hostile("far too loud", lambda: encoded(voice() * 1e30, subtype="FLOAT"), 422, "full scale"),
    Hostile("truncated wav", lambda: half(encoded(voice())), 422, "truncated"),
    Hostile("truncated rf64", lambda: half(encoded(voice(4.0), kind="RF64")), 422, "truncated"),
    Hostile("truncated flac", lambda: half(encoded(voice(), kind="FLAC")), 422, "truncated"),
    Hostile("truncated mp3", lambda: half(encoded(voice(), kind="MP3")), 422, "truncated"),
    Hostile("truncated ogg", lambda: half(GOOD["ogg vorbis"]()), 422, "truncated"),
    Hostile("truncated opus", lambda: half(GOOD["ogg opus"]()), 422, "truncated"),
    Hostile("flac that claims 19 hours", lambda: flac_claiming(2**36 - 1), 422, "truncated"),
    Hostile("wav of 61 s", lambda: encoded(voice(61, 8_000), 8_000), 422, "longer than 60 s"),
    Hostile("flac of an hour of nothing", long_flac, 422, "longer than 60 s"),
    Hostile("4 kHz", lambda: encoded(voice(rate=4_000), 4_000), 422, "sample rate"),
    Hostile("1 Hz", lambda: encoded(voice(), 1), 422, "sample rate"),
    Hostile("384 kHz", lambda: encoded(voice(), 384_000), 422, "sample rate"),
    Hostile("64 channels", lambda: encoded(np.zeros((24_000, 64), np.float32)), 422, "channels"),
)
"""What must be refused, each encoded when it is asked for."""
