"""The resampler gives all of the sound, at its place, in whatever pieces it came."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.audio.encoders import Resampler
from realtime_tts.audio.formats import ENGINE_RATE, RATES
from tests.properties import examples

OTHERS = [rate for rate in RATES if rate != ENGINE_RATE]
FRAME = 1_920


def tone(samples: int, rate: int, hertz: float = 440.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(samples) / rate)).astype(np.float32)


def resampled(sound: np.ndarray, rate: int, cuts: list[int]) -> np.ndarray:
    resampler = Resampler(ENGINE_RATE, rate)
    pieces = [resampler.push(piece) for piece in np.split(sound, cuts)]
    return np.concatenate([*pieces, resampler.finish()])


@pytest.mark.parametrize("rate", OTHERS)
def test_a_tone_stays_where_it_was_and_as_long_as_it_was(rate: int) -> None:
    sound = tone(ENGINE_RATE, ENGINE_RATE)
    out = resampled(sound, rate, list(range(FRAME, len(sound), FRAME)))
    assert len(out) == rate
    inner = slice(rate // 20, -rate // 20)  # a tone's ends are clicks
    assert np.abs(out - tone(rate, rate))[inner].max() < 1e-3


@pytest.mark.parametrize("rate", OTHERS)
def test_most_of_the_first_frame_leaves_at_once(rate: int) -> None:
    first = Resampler(ENGINE_RATE, rate).push(tone(FRAME, ENGINE_RATE))
    assert 0.060 <= len(first) / rate <= 0.080


@pytest.mark.parametrize("samples", [0, 1, 2, 100, 1_921])
@pytest.mark.parametrize("rate", OTHERS)
def test_the_length_is_right_for_short_sounds_too(samples: int, rate: int) -> None:
    out = resampled(tone(samples, ENGINE_RATE), rate, [])
    assert abs(len(out) - samples * rate / ENGINE_RATE) <= 0.5


def test_what_a_telephone_cannot_carry_is_not_folded_into_what_it_can() -> None:
    out = resampled(tone(ENGINE_RATE, ENGINE_RATE, 6_000.0), 8_000, [])
    assert np.abs(out[800:-800]).max() < 1e-3


@examples(20)
@given(st.sampled_from(OTHERS), st.lists(st.integers(0, 9_600), max_size=12), st.integers(0, 2**32))
def test_pieces_give_what_the_whole_gives(rate: int, cuts: list[int], seed: int) -> None:
    noise = np.random.default_rng(seed).uniform(-1, 1, 9_600).astype(np.float32)
    whole = resampled(noise, rate, [])
    assert np.array_equal(resampled(noise, rate, sorted(cuts)), whole)
