"""µ-law and A-law are the standard's, for every sample there is."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from realtime_tts.audio.g711 import alaw, mulaw

EVERY = np.arange(-32_768, 32_768)


def codes(law: object, samples: np.ndarray) -> np.ndarray:
    return np.frombuffer(law(samples.astype("<i2").tobytes()), dtype=np.uint8)  # type: ignore[operator]


def mulaw_decisions() -> np.ndarray:
    """Column 3 of table 2a: where one value ends and the next begins, of 14 bits."""
    values, step = [0, *range(1, 32, 2)], 4  # the first step is half as long as its neighbours
    for _ in range(7):
        start = values[-1]
        values += [start + step * n for n in range(1, 17)]
        step *= 2
    return np.array(values)


def alaw_decisions() -> np.ndarray:
    """Column 3 of table 1a: the same for A-law, of 13 bits; the first two segments are alike."""
    values, start, step = [], 0, 2
    for segment in range(8):
        values += [start + step * n for n in range(16)]
        start += 16 * step
        step *= 2 if segment else 1
    return np.array([*values, start])


def test_the_ends_of_segments_are_those_of_the_standard() -> None:
    ends = mulaw_decisions()[[0, 16, 32, 48, 64, 80, 96, 112]]
    assert ends.tolist() == [0, 31, 95, 223, 479, 991, 2_015, 4_063]
    assert mulaw_decisions()[-1] == 8_159
    ends = alaw_decisions()[[0, 16, 32, 48, 64, 80, 96, 112, 128]]
    assert ends.tolist() == [0, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096]


def test_every_sample_falls_between_the_standards_decision_values() -> None:
    positive = np.arange(0, 32_768)
    value = np.searchsorted(mulaw_decisions(), positive >> 2, side="right") - 1
    assert np.array_equal(codes(mulaw, positive), 0xFF - np.minimum(value, 127))
    value = np.searchsorted(alaw_decisions(), positive >> 3, side="right") - 1
    assert np.array_equal(codes(alaw, positive), (0x80 + value) ^ 0x55)


def test_the_negative_half_mirrors_the_positive_one() -> None:
    positive = np.arange(4, 32_768)
    assert np.array_equal(codes(mulaw, -positive)[::4], codes(mulaw, positive)[::4] & 0x7F)
    assert np.array_equal(codes(alaw, ~positive), codes(alaw, positive) & 0x7F)


@pytest.mark.parametrize(("law", "crc"), [(mulaw, 0x3B7C3A3E), (alaw, 0x9133796E)])
def test_all_65536_samples_are_as_in_the_reference_tables(law: object, crc: int) -> None:
    """The check sums are of what `audioop`, in Python until 3.12, gave for -32768 to 32767."""
    assert zlib.crc32(codes(law, EVERY).tobytes()) == crc


def test_known_values() -> None:
    samples = np.array([0, -1, 8, -8, 1_000, -1_000, 32_767, -32_768])
    assert codes(mulaw, samples).tolist() == [0xFF, 0x7E, 0xFE, 0x7E, 0xCE, 0x4E, 0x80, 0x00]
    assert codes(alaw, samples).tolist() == [0xD5, 0x55, 0xD5, 0x55, 0xFA, 0x7A, 0xAA, 0x2A]
    assert mulaw(b"") == alaw(b"") == b""
