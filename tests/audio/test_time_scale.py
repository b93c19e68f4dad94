"""Sound at another speed: as long as it should be, at its own pitch, and without a click."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from realtime_tts.audio.speed import LOOKAHEAD, Speed
from realtime_tts.audio.time_scale import TimeScale
from tests.properties import examples

RATE = 24_000
FRAME = 1_920
SPEEDS = (0.7, 0.85, 1.15, 1.4)
Pcm = NDArray[np.int16]
Floats = NDArray[np.float64]


def at_speed(pcm: Pcm, speed: float, cuts: list[int] | None = None) -> Pcm:
    scale = TimeScale(Speed(speed))
    given = [scale.push(piece.tobytes()) for piece in np.split(pcm, cuts or [])]
    return np.frombuffer(b"".join([*given, scale.finish()]), "<i2")


def voice(seconds: float, f0: float = 120.0, vibrato: float = 0.03) -> Pcm:
    """Harmonics of a pitch that moves a little, in syllables, at the level of speech."""
    time = np.arange(round(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(f0 * (1 + vibrato * np.sin(2 * np.pi * 0.7 * time))) / RATE
    sound = sum(np.sin(n * phase + n * n) / n for n in range(1, 25) if n * f0 < 8_000)
    syllables = 0.25 + 0.75 * np.abs(np.sin(2 * np.pi * 2.1 * time))
    return np.asarray(np.rint(4_000 * sound * syllables), dtype="<i2")


def pitch(sound: Floats) -> float:
    """Hertz of a stretch of sound: where its autocorrelation, freed of the window's own, is
    highest from 60 to 400 Hz (Boersma 1993); 0 if it has none."""
    window = np.hanning(len(sound))
    power = np.abs(np.fft.rfft(sound * window, 8_192)) ** 2
    own = np.abs(np.fft.rfft(window, 8_192)) ** 2
    likeness = np.fft.irfft(power)[:720] / np.fft.irfft(own)[:720]
    lags = np.arange(RATE // 400, RATE // 60)
    high = likeness[lags] >= max(0.9 * likeness[lags].max(), 0.8 * likeness[0])
    peaks = lags[
        high & (likeness[lags] > likeness[lags - 1]) & (likeness[lags] > likeness[lags + 1])
    ]
    if not len(peaks):
        return 0.0
    lag = int(peaks[0])  # two periods are as alike as one
    before, here, after = likeness[lag - 1 : lag + 2]
    return float(RATE / (lag + 0.5 * (before - after) / (before - 2 * here + after)))


def pitch_ratios(before: Pcm, after: Pcm, speed: float) -> Floats:
    """How much the pitch differs, wherever both have one: at the same place of the text."""
    found = []
    for middle in range(1_200, len(after) - 1_200, 480):
        there = round(middle * speed)
        pieces = (before[there - 720 :][:1_440], after[middle - 720 :][:1_440])
        if all(len(piece) == 1_440 and np.abs(piece).max() > 500 for piece in pieces):
            first, second = (pitch(piece.astype(float)) for piece in pieces)
            if first and second:
                found.append(second / first)
    return np.array(found)


@pytest.mark.parametrize("f0", [75.0, 120.0, 210.0, 330.0])
@pytest.mark.parametrize("speed", SPEEDS)
def test_the_pitch_stays(speed: float, f0: float) -> None:
    before = voice(2.0, f0)
    ratios = pitch_ratios(before, at_speed(before, speed), speed)
    assert len(ratios) > 30
    assert np.median(ratios) == pytest.approx(1.0, abs=0.01)
    assert np.mean(np.abs(ratios - 1) < 0.03) > 0.95


@pytest.mark.parametrize("speed", SPEEDS)
def test_a_voice_sounds_as_smooth_as_it_was(speed: float) -> None:
    """Between harmonics there is nothing, and a click at a join would be there. A repetition
    without regard to the sound puts 15 dB more of it there."""
    before = voice(3.0, 110.0, vibrato=0.0)

    def between(pcm: Pcm) -> float:
        size = 4_800
        frames = np.lib.stride_tricks.sliding_window_view(pcm.astype(float), size)[::1_200]
        spectra = np.abs(np.fft.rfft(frames * np.blackman(size), axis=1)) ** 2
        hertz = np.fft.rfftfreq(size, 1 / RATE)
        off = np.abs((hertz / 110.0) % 1 - 0.5) < 0.2
        band = hertz > 2_500  # where slow syllables have no sidebands
        return float(10 * np.log10(spectra[:, off & band].sum() / spectra[:, ~off].sum()))

    blind = np.concatenate(
        [
            before[round(at * speed) :][:480]
            for at in range(0, round(len(before) / speed) - 480, 480)
        ]
    )
    assert between(at_speed(before, speed)) < between(blind) - 15


def test_clicks_are_heard_once_and_none_is_lost() -> None:
    noise = np.random.default_rng(3).normal(0, 60, 6 * RATE)
    places = np.arange(RATE // 4, 6 * RATE - RATE // 4, 5_987)
    for place in places:
        noise[place : place + 24] += 12_000 * np.hanning(24)
    before = np.asarray(np.rint(noise), dtype="<i2")
    for speed in SPEEDS:
        loud = np.flatnonzero(at_speed(before, speed) > 5_000)
        begins = loud[np.diff(loud, prepend=-RATE) > 48]
        assert len(begins) == len(places), speed
        assert np.abs(begins * speed - places).max() < 0.02 * RATE + 24, speed


@given(st.integers(0, 30_000), st.floats(0.7, 1.4))
@examples(60)
def test_it_is_as_long_as_it_should_be(samples: int, speed: float) -> None:
    pcm = voice(1.25)[:samples]
    if speed != 1.0:
        assert len(at_speed(pcm, speed)) == ceil(samples / speed) == Speed(speed).played(samples)


@given(st.data(), st.sampled_from(SPEEDS))
@examples(40)
def test_pieces_give_what_the_whole_gives(data: st.DataObject, speed: float) -> None:
    pcm = voice(0.6)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(pcm)), max_size=12)))
    assert np.array_equal(at_speed(pcm, speed, cuts), at_speed(pcm, speed))


@pytest.mark.parametrize("speed", SPEEDS)
def test_little_is_held_and_what_is_given_is_in_time(speed: float) -> None:
    scale, given = TimeScale(Speed(speed)), 0
    for at, frame in enumerate(np.split(voice(1.6), 20)):
        given += len(scale.push(frame.tobytes())) // 2
        assert (at + 1) * FRAME - LOOKAHEAD - 1 <= given * speed <= (at + 1) * FRAME
        if not at:
            assert given * speed >= FRAME - LOOKAHEAD  # at least 60 of the first 80 ms


@pytest.mark.parametrize("speed", SPEEDS)
def test_silence_stays_silence(speed: float) -> None:
    quiet = np.zeros(RATE, "<i2")
    assert not at_speed(quiet, speed).any()
    spoken = np.concatenate([voice(0.5), quiet, voice(0.5)])
    middle = at_speed(spoken, speed)[round(0.53 * RATE / speed) : round(1.47 * RATE / speed)]
    assert not middle.any()


def test_the_beginning_and_the_end_are_those_of_the_sound() -> None:
    """So nothing is heard where utterances meet that is not heard without a change of speed."""
    pcm = voice(1.0)
    for speed in SPEEDS:
        changed = at_speed(pcm, speed)
        assert np.array_equal(changed[:240], pcm[:240])
        assert changed[-1] == pcm[-1]


@given(st.integers(2, 12), st.integers(0, 15_000), st.sampled_from(SPEEDS))
@examples(25)
def test_an_output_is_gone_on_with_where_it_stood(frames: int, more: int, speed: float) -> None:
    """With sound from some time before: what that is of, is where another server begins."""
    pcm = voice(1.6)
    first = TimeScale(Speed(speed))
    before = first.push(pcm[: frames * FRAME].tobytes())
    begins = max(0, first.place.next - TimeScale.HISTORY - more)
    second = TimeScale(Speed(speed), first.place, begins)
    pieces = [second.push(pcm[at:][:FRAME].tobytes()) for at in range(begins, len(pcm), FRAME)]
    rest = b"".join([*pieces, second.finish()])
    assert before + rest == at_speed(pcm, speed).tobytes()


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("more", [0, 240, TimeScale.HISTORY])
def test_an_input_that_ends_before_its_place_has_no_rest(speed: float, more: int) -> None:
    """As where an engine fails before it has made the speech again that was played elsewhere."""
    pcm = voice(0.8)
    first = TimeScale(Speed(speed))
    first.push(pcm.tobytes())
    begins = first.place.next - TimeScale.HISTORY
    second = TimeScale(Speed(speed), first.place, begins)
    given = second.push(pcm[begins : begins + more].tobytes())
    assert len(given + second.finish()) < 2 * LOOKAHEAD
