"""Sounds like speech, and meters of others to measure what comes of them."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Protocol

import av
import numpy as np
import soxr
from numpy.typing import NDArray

RATE = 24_000

Samples = NDArray[np.float64]


class Stage(Protocol):
    def push(self, pcm: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


@cache
def voice(
    seconds: float, lufs: float, seed: int = 1, pitch: float = 120.0, pulses_s: float = 0.0
) -> bytes:
    """Buzzing syllables with breath in them, and a pause now and then, so loud: s16le, 24 kHz.

    In the first `pulses_s` seconds the harmonics peak together, as those of a throat do.
    """
    rng = np.random.default_rng(seed)
    count = round(seconds * RATE)
    time = np.arange(count) / RATE
    phase = 2 * np.pi * np.cumsum(pitch * (1 + 0.15 * np.sin(2 * np.pi * 0.7 * time))) / RATE
    turning, pulses = np.exp(1j * phase), int(np.searchsorted(time, pulses_s))
    together, apart = _harmonics(turning[:pulses], np.pi / 2, 0.01), _harmonics(turning[pulses:])
    buzz = np.concatenate([together, apart])
    rate = 4.0  # syllables in a second
    places = np.arange(round(seconds * rate) + 2) / rate
    heights = rng.uniform(0.25, 1.0, len(places)) * (rng.random(len(places)) > 0.12)
    envelope = np.interp(time, places, heights) * (0.6 + 0.4 * np.sin(2 * np.pi * rate * time))
    sound = envelope * (buzz + 0.15 * rng.standard_normal(count))
    return pcm_of(sound * 10 ** ((lufs - loudness(sound)) / 20))


def _harmonics(turning: NDArray[np.complex128], begin: float = 0.0, apart: float = 1.0) -> Samples:
    """The sum of 39 harmonics; `turning`: the tone as a complex number, `begin` and `apart`: where
    they begin, in radians. It is a polynomial: a sine for each would take three times as long."""
    number = np.arange(1, 40)
    factors = np.exp(1j * (begin + number**2 * apart)) / number
    return np.asarray(np.polyval([*factors[::-1], 0.0], turning).imag, np.float64)


def pcm_of(sound: Samples) -> bytes:
    return np.clip(np.rint(sound * 32_767), -32_768, 32_767).astype("<i2").tobytes()


def samples_of(pcm: bytes) -> Samples:
    samples: Samples = np.frombuffer(pcm, "<i2") / 32_768
    return samples


def loudness(sound: bytes | Samples) -> float:
    """LUFS, by FFmpeg: pyloudnorm brings SciPy, which takes a second to import."""
    samples = samples_of(sound) if isinstance(sound, bytes) else sound
    graph = av.filter.Graph()
    source = graph.add_abuffer(sample_rate=RATE, format="flt", layout="mono")
    meter, sink = graph.add("ebur128", "metadata=1:framelog=quiet"), graph.add("abuffersink")
    source.link_to(meter)
    meter.link_to(sink)
    graph.configure()
    frame = av.AudioFrame.from_ndarray(samples.astype(np.float32)[None], "flt", "mono")
    frame.sample_rate = RATE
    source.push(frame)
    source.push(None)
    found = ""
    with suppress(EOFError):
        while True:
            found = sink.pull().metadata.get("lavfi.r128.I", found)
    return float(found)


def true_peak(pcm: bytes) -> float:
    """dBTP, by soxr in sixteen times as many samples."""
    more = soxr.resample(samples_of(pcm), RATE, 16 * RATE, quality="VHQ")
    return float(20 * np.log10(np.abs(more).max()))


def through(stage: Stage, pcm: bytes, piece: int = 3_840) -> bytes:
    """All that comes of it, a frame at a time."""
    given = [stage.push(pcm[at : at + piece]) for at in range(0, len(pcm), piece)]
    return b"".join([*given, stage.finish()])
