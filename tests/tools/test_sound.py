"""How a voice sounds: each measure against sound that was made to have a known value."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tools.demo_voice.alignment import align, cheapest_path
from tools.demo_voice.pitch import Pitch, paired_semitones
from tools.demo_voice.recognise import Recording
from tools.demo_voice.sound import Listening
from tools.demo_voice.voice_quality import (
    bandwidth,
    flutter,
    harmonics_to_noise,
    loudness,
    silence_before,
)

pytest.importorskip("scipy", reason="scipy comes with the demo-voice extra")
RATE = 24_000
needs_pyworld = pytest.mark.skipif(
    find_spec("pyworld") is None,
    reason="pyworld comes with the demo-voice extra",
)


def noise(seconds: float, level: float = 0.1, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(0, level, round(seconds * RATE))


def voice(hertz: NDArray[np.float64], seed: int = 1) -> NDArray[np.float64]:
    """Twenty harmonics of a pitch given for every sample, weaker with height, and faint noise."""
    phase = 2 * np.pi * np.cumsum(hertz) / RATE
    tone = sum(np.sin(number * phase) / number for number in range(1, 21))
    return 0.1 * tone + noise(len(hertz) / RATE, 1e-4, seed)


def glide(start: float, semitones: float, seconds: float) -> NDArray[np.float64]:
    """A pitch that moves evenly on the scale of semitones."""
    return start * 2 ** (np.linspace(0, semitones, round(seconds * RATE)) / 12)


def pitch(samples: NDArray[np.float64]) -> Pitch:
    return Pitch.of(Recording(samples, RATE))


@needs_pyworld
@pytest.mark.parametrize("semitones", [-6.0, 0.0, 4.0])
def test_a_glide_moves_as_far_as_it_was_made_to(semitones: float) -> None:
    found = pitch(voice(glide(180, semitones, 2.0)))
    assert found.movement() == pytest.approx(semitones * 1.75 / 2, abs=0.3)
    assert found.terminal() == pytest.approx(semitones * 0.25 / 2, abs=0.15)
    assert found.range() == pytest.approx(abs(semitones) * 0.9, abs=0.3)
    assert found.median() == pytest.approx(180 * 2 ** (semitones / 24), rel=0.02)


@needs_pyworld
def test_only_the_last_quarter_second_makes_the_end() -> None:
    rising = np.concatenate([glide(200, -4, 1.5), glide(160, 5, 0.25)])
    found = pitch(voice(rising))
    assert found.terminal() == pytest.approx(5, abs=1)
    assert found.movement() < 0


@needs_pyworld
def test_one_frame_an_octave_off_does_not_turn_the_end_round() -> None:
    found = pitch(voice(glide(200, -8, 1.0)))
    broken = found.hertz.copy()
    broken[np.flatnonzero(found.voiced)[-2]] *= 2
    assert Pitch(broken).terminal() == pytest.approx(found.terminal(), abs=0.4)


@needs_pyworld
def test_noise_has_no_pitch() -> None:
    spoken = np.concatenate([voice(np.full(RATE, 150.0)), noise(1.0)])
    assert pitch(spoken).share == pytest.approx(0.5, abs=0.06)


def test_what_has_no_pitch_has_no_movement() -> None:
    silent = Pitch(np.zeros(200))
    assert silent.share == 0.0
    assert all(
        math.isnan(value())
        for value in (silent.median, silent.range, silent.movement, silent.terminal)
    )


small = st.integers(1, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(0, 9), min_size=columns, max_size=columns), min_size=1, max_size=4
    )
)


def every_path(rows: int, columns: int) -> list[list[tuple[int, int]]]:
    if (rows, columns) == (1, 1):
        return [[(0, 0)]]
    before = [(rows - down, columns - right) for down, right in ((1, 0), (0, 1), (1, 1))]
    return [
        [*path, (rows - 1, columns - 1)]
        for cell in before
        if min(cell) > 0
        for path in every_path(*cell)
    ]


@given(small)
def test_no_other_path_is_cheaper(rows: list[list[int]]) -> None:
    distances = np.array(rows, np.float64)
    path = cheapest_path(distances)
    paths = every_path(*distances.shape)
    assert [tuple(cell) for cell in path.tolist()] in paths
    costs = [sum(distances[cell] for cell in each) for each in paths]
    assert distances[path[:, 0], path[:, 1]].sum() == min(costs)


def coloured(lengths: list[float], contour: list[float]) -> Recording:
    """Parts of different colour, each with a pitch of its own."""
    parts = []
    for number, (seconds, hertz) in enumerate(zip(lengths, contour, strict=True)):
        phase = 2 * np.pi * np.cumsum(np.full(round(seconds * RATE), hertz)) / RATE
        heights = np.arange(1, 30)
        gains = np.exp(-(((heights * hertz - 400 - 700 * number) / 300) ** 2)) + 0.02 / heights
        parts.append(sum(g * np.sin(h * phase) for h, g in zip(heights, gains, strict=True)))
    return Recording(0.1 * np.concatenate(parts), RATE)


@needs_pyworld
def test_the_same_melody_at_another_pace_and_height_correlates() -> None:
    model = coloured([0.4, 0.3, 0.5, 0.4], [150, 200, 170, 120])
    alike = coloured([0.3, 0.5, 0.4, 0.4], [225, 300, 255, 180])
    opposite = coloured([0.3, 0.5, 0.4, 0.4], [200, 150, 180, 250])
    pitches = {each: Pitch.of(each) for each in (model, alike, opposite)}
    found = [
        np.corrcoef(*paired_semitones(pitches[each], pitches[model], align(each, model)))[0, 1]
        for each in (model, alike, opposite)
    ]
    assert found[0] == pytest.approx(1.0)
    assert found[1] > 0.9
    assert found[2] < -0.8


@pytest.mark.parametrize("decibels", [5.0, 15.0])
def test_harmonics_to_noise_is_the_ratio_that_was_mixed(decibels: float) -> None:
    times = np.arange(2 * 16_000) / 16_000
    tone = np.sin(2 * np.pi * 140 * np.outer(np.arange(1, 10), times)).sum(axis=0)
    hiss = np.random.default_rng(1).normal(0, 1, len(times))
    hiss *= np.sqrt((tone**2).mean() / (hiss**2).mean() / 10 ** (decibels / 10))
    recording = Recording(0.03 * (tone + hiss), 16_000)
    steady = Pitch(np.full(190, 140.0))
    assert harmonics_to_noise(recording, steady) == pytest.approx(decibels, abs=1.5)


def test_silence_has_neither_harmonics_nor_bandwidth() -> None:
    silence = Recording(np.zeros(RATE), RATE)
    assert math.isnan(harmonics_to_noise(silence, Pitch(np.zeros(100))))
    assert bandwidth([silence]) == 0.0
    assert silence_before(silence) == 1.0


@pytest.mark.parametrize("limit", [3_000, 8_000, 11_000])
def test_the_bandwidth_is_where_the_sound_ends(limit: int) -> None:
    spectrum = np.fft.rfft(noise(2.0))
    spectrum[np.fft.rfftfreq(2 * RATE, 1 / RATE) > limit] = 0
    low = Recording(np.fft.irfft(spectrum), RATE)
    assert bandwidth([low, low]) == pytest.approx(limit, abs=250)


def test_pitch_that_changes_with_every_frame_flutters() -> None:
    times = np.arange(100) / 100

    def swinging(hertz: float) -> Pitch:
        tones = 0.5 * np.sin(2 * np.pi * hertz * times) + 3 * times  # a tremble on a long rise
        return Pitch(150 * 2 ** (tones / 12))

    assert flutter([swinging(12.5)]) > 20
    assert flutter([swinging(5.0)]) < -20
    both = Pitch(swinging(12.5).hertz * swinging(5.0).hertz / 150)
    assert flutter([both]) == pytest.approx(0, abs=2)


def test_what_is_voiced_too_shortly_cannot_flutter() -> None:
    broken = np.full(100, 150.0)
    broken[::20] = 0
    assert math.isnan(flutter([Pitch(broken)]))


def test_the_loudness_of_a_sine_is_what_the_standard_says() -> None:
    """ITU-R BS.1770: a full-scale sine of 997 Hz in one channel reads -3.01."""
    pytest.importorskip("pyloudnorm", reason="pyloudnorm comes with the demo-voice extra")
    times = np.arange(3 * 48_000) / 48_000
    sine = Recording(0.1 * np.sin(2 * np.pi * 997 * times), 48_000)
    assert loudness([sine]) == pytest.approx(-23.01, abs=0.1)


def test_the_silence_before_speech_is_timed() -> None:
    late = Recording(np.concatenate([np.zeros(RATE // 8), noise(1.0)]), RATE)
    assert silence_before(late) == pytest.approx(0.125, abs=0.005)


@needs_pyworld
def test_questions_and_statements_are_counted_apart() -> None:
    pytest.importorskip("pyloudnorm", reason="pyloudnorm comes with the demo-voice extra")
    up, down = (Recording(voice(glide(180, move, 2.0)), RATE) for move in (4, -4))
    texts = ["Really?", "Really.", "\u201cNow?\u201d"]
    listening = Listening("some", texts)
    sound = listening.sound("teacher", "ava", [up, down, up], [up, down, up])
    assert sound.movement_statements == pytest.approx(-3.5, abs=0.3)
    assert sound.movement_questions == pytest.approx(3.5, abs=0.3)
    assert sound.end_statements < 0 < sound.end_questions
    assert sound.correlation == pytest.approx(1.0)
    assert (sound.set, sound.source, sound.voice) == ("some", "teacher", "ava")
    turned = listening.sound("streaming", "ava", [down, up, down], [up, down, up])
    assert turned.correlation < 0.5
