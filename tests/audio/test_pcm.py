"""Quantisation: half a step at most, clipped, symmetric."""

import numpy as np

from realtime_tts.audio.pcm import FULL_SCALE, from_s16le, to_s16le


def test_full_scale_silence_and_clipping() -> None:
    samples = np.array([0.0, 1.0, -1.0, 1.5, -7.0], dtype=np.float32)
    values = np.frombuffer(to_s16le(samples), dtype="<i2")
    assert values.tolist() == [0, FULL_SCALE, -FULL_SCALE, FULL_SCALE, -FULL_SCALE]


def test_a_sample_is_off_by_half_a_step_at_most() -> None:
    samples = np.linspace(-1, 1, 100_001, dtype=np.float32)
    error = np.abs(from_s16le(to_s16le(samples)) - samples)
    assert error.max() <= 0.5 / FULL_SCALE + 1e-7


def test_the_bytes_are_little_endian() -> None:
    assert to_s16le(np.array([1 / FULL_SCALE], dtype=np.float32)) == b"\x01\x00"


def test_a_turned_sign_turns_the_bytes() -> None:
    samples = np.random.default_rng(7).uniform(-1, 1, 4_096).astype(np.float32)
    up = np.frombuffer(to_s16le(samples), dtype="<i2")
    down = np.frombuffer(to_s16le(-samples), dtype="<i2")
    assert np.array_equal(up, -down)


def test_an_empty_piece_is_empty() -> None:
    assert to_s16le(np.zeros(0, dtype=np.float32)) == b""
