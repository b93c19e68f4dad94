"""Recordings made by code: good ones in every format, and hostile ones with what each deserves."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

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


@cache
def good() -> dict[str, bytes]:
    """What must be taken: every format, odd rates, odd channels."""
    return {
        "wav": encoded(voice()),
        "wav float": encoded(voice(), subtype="FLOAT"),
        "wav 24 bit 8 kHz": encoded(voice(rate=8_000), 8_000, subtype="PCM_24"),
        "wav 192 kHz": encoded(voice(1.5, 192_000), 192_000),
        "wav 11025 Hz, 6 channels": encoded(voice(rate=11_025, channels=6), 11_025),
        "wav louder than full scale": encoded(voice() * 20, subtype="FLOAT"),
        "wav from a pipe": with_data_size(encoded(voice()), 0xFFFFFFFF),
        "flac": encoded(voice(), kind="FLAC"),
        "mp3": encoded(voice(3.0, 44_100), 44_100, kind="MP3"),
        "ogg vorbis": encoded(voice(rate=48_000), 48_000, kind="OGG", subtype="VORBIS"),
        "ogg opus": encoded(voice(rate=48_000), 48_000, kind="OGG", subtype="OPUS"),
    }


def with_data_size(wav: bytes, size: int) -> bytes:
    at = wav.index(b"data") + 4
    return wav[:at] + struct.pack("<I", size) + wav[at + 4 :]


def flac_claiming(samples: int) -> bytes:
    """A FLAC whose header claims so many samples (36 bits at most)."""
    flac = bytearray(encoded(voice(), kind="FLAC"))
    at = 4 + 4 + 10  # magic, block header, sizes of blocks and frames
    packed = int.from_bytes(flac[at : at + 8], "big")
    packed = (packed >> 36 << 36) | samples
    flac[at : at + 8] = packed.to_bytes(8, "big")
    return bytes(flac)


@dataclass(frozen=True)
class Hostile:
    """`status` and a word of the message that the upload has to be answered with."""

    name: str
    data: bytes
    status: int
    says: str


@cache
def hostile() -> tuple[Hostile, ...]:
    return tuple(_hostile())


def _hostile() -> Iterator[Hostile]:
    nan, infinite = voice(), voice()
    nan[1000], infinite[1000] = np.nan, np.inf
    wav, flac, mp3 = encoded(voice()), encoded(voice(), kind="FLAC"), encoded(voice(), kind="MP3")
    ogg = encoded(voice(rate=48_000), 48_000, kind="OGG", subtype="VORBIS")
    opus = encoded(voice(rate=48_000), 48_000, kind="OGG", subtype="OPUS")
    many = np.zeros((24_000, 64), np.float32)
    yield Hostile("empty", b"", 422, "empty")
    yield Hostile("one byte", b"\xff", 415, "WAV, FLAC, OGG or MP3")
    yield Hostile("text", b"this is not audio at all" * 10, 415, "none of them")
    yield Hostile("png", b"\x89PNG\r\n\x1a\n" + bytes(1000), 415, "none of them")
    yield Hostile("aiff", encoded(voice(), kind="AIFF"), 415, "none of them")
    yield Hostile("zip", b"PK\x03\x04" + bytes(1000), 415, "none of them")
    yield Hostile("noise behind a flac's magic", b"fLaC" + noise(5000), 422, "decoded")
    yield Hostile("noise behind an ogg's magic", b"OggS" + noise(5000), 422, "decoded")
    yield Hostile("noise that might be mp3", b"\xff\xfb" + noise(5000), 422, "recording")
    yield Hostile("wav header alone", wav[:44], 422, "truncated")
    yield Hostile("wav without samples", encoded(np.zeros(0, np.float32)), 422, "at least 1 s")
    yield Hostile("one sample", encoded(voice()[:1]), 422, "at least 1 s")
    yield Hostile("half a second", encoded(voice(0.5)), 422, "at least 1 s")
    yield Hostile("silent", encoded(voice() * 1e-5), 422, "silent")
    yield Hostile("zeros", encoded(np.zeros(48_000, np.float32)), 422, "silent")
    yield Hostile("NaN", encoded(nan, subtype="FLOAT"), 422, "NaN")
    yield Hostile("infinity", encoded(infinite, subtype="FLOAT"), 422, "NaN")
    yield Hostile("far too loud", encoded(voice() * 1e30, subtype="FLOAT"), 422, "full scale")
    yield Hostile("truncated wav", wav[: len(wav) // 2], 422, "truncated")
    yield Hostile("truncated flac", flac[: len(flac) // 2], 422, "truncated")
    yield Hostile("truncated mp3", mp3[: len(mp3) // 2], 422, "truncated")
    yield Hostile("truncated ogg", ogg[: len(ogg) // 2], 422, "truncated")
    yield Hostile("truncated opus", opus[: len(opus) // 2], 422, "truncated")
    yield Hostile("flac that claims 19 hours", flac_claiming(2**36 - 1), 422, "truncated")
    yield Hostile("wav of 61 s", encoded(voice(61, 8_000), 8_000), 422, "longer than 60 s")
    yield Hostile("flac of an hour of nothing", long_flac(), 422, "longer than 60 s")
    yield Hostile("4 kHz", encoded(voice(rate=4_000), 4_000), 422, "sample rate")
    yield Hostile("1 Hz", encoded(voice(), 1), 422, "sample rate")
    yield Hostile("384 kHz", encoded(voice(), 384_000), 422, "sample rate")
    yield Hostile("64 channels", encoded(many), 422, "channels")


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
