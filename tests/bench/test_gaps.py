import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.bench.heard import Sound, SpokenWords, find_gaps

RATE = 24_000
LOUD, CLOSURE, HUSH = 8_000.0, 200.0, 8.0  # 0, -32 and -60 dB of a voice's level


def sound(*parts: tuple[float, float], scale: float = 1.0) -> Sound:
    """Tones of (seconds, amplitude), one after the other."""
    samples = array("h")
    for seconds, amplitude in parts:
        samples.extend(
            round(scale * amplitude * math.sin(2 * math.pi * 150 * n / RATE))
            for n in range(round(seconds * RATE))
        )
    return Sound(samples.tobytes())


SPOKEN = ((0.2, HUSH), (0.4, LOUD), (0.05, CLOSURE), (0.3, LOUD), (0.25, HUSH), (0.8, LOUD))
"""Silence, a word with a closure at 0.6 s, a pause from 0.95 to 1.2 s, and a long word."""


@pytest.mark.parametrize("scale", [1.0, 0.05])
@pytest.mark.parametrize(
    ("seconds", "cut"),
    [
        (0.4, True),
        (0.58, True),  # into the closure
        (0.625, True),  # in the middle of the closure
        (0.95, False),  # as the word ends
        (1.0, False),
        (1.2, False),  # as the next one begins
        (1.6, True),
        (0.1, False),
        (2.0, False),  # behind everything
    ],
)
def test_a_gap_cuts_speech_where_there_is_speech_on_both_sides(
    seconds: float, cut: bool, scale: float
) -> None:
    assert sound(*SPOKEN, scale=scale).cut_at(seconds) is cut


def test_no_sound_is_never_cut() -> None:
    assert not Sound(b"").cut_at(0.0)
    assert not sound((1.0, 0.0)).cut_at(0.5)


def test_a_gap_is_where_and_for_how_long_nothing_was_left_to_play() -> None:
    first, second = find_gaps([(10.0, RATE), (11.5, RATE), (12.0, RATE), (13.75, 100)])
    assert (first.at, first.began, first.ended) == pytest.approx((1.0, 11.0, 11.5))
    assert (second.at, second.began, second.seconds) == pytest.approx((3.0, 13.5, 0.25))


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, RATE)), min_size=1, max_size=20))
def test_gaps_and_sound_fill_the_time_from_the_first_packet_on(
    arrivals: list[tuple[float, int]],
) -> None:
    at, packets = 0.0, []
    for wait, samples in arrivals:
        at += wait
        packets.append((at, samples))
    heard_until = packets[0][0]
    for came, samples in packets:
        heard_until = max(heard_until, came) + samples / RATE
    whole = sum(samples for _, samples in packets) / RATE
    gaps = sum(gap.seconds for gap in find_gaps(packets))
    assert packets[0][0] + whole + gaps == pytest.approx(heard_until, abs=1e-6)


WORDS = SpokenWords([("One", 0.5), (" day,", 1.0), (' "later."', 2.0), (" Then", 2.4)])


def test_a_silent_gap_falls_between_two_words_and_a_cut_into_one() -> None:
    places = {0.1: 0, 0.4: 1, 1.4: 2, 1.6: 3, 2.35: 4, 3.0: 4}
    assert {at: WORDS.before(at, cut=False) for at in places} == places
    places = {0.4: 0, 0.6: 1, 1.99: 2, 2.3: 3}
    assert {at: WORDS.before(at, cut=True) for at in places} == places


def test_a_silent_gap_near_the_end_of_a_clause_is_at_its_end() -> None:
    assert WORDS.before(0.74, cut=False) == 2, "'One' ends nearer, but no clause does"
    assert WORDS.before(2.25, cut=False) == 3
    assert WORDS.before(2.25, cut=True) == 3


def test_a_speaker_may_breathe_behind_a_mark_and_before_the_first_word() -> None:
    assert [WORDS.ends_clause(number) for number in range(5)] == [True, False, True, True, False]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("", 0),
        ("One", 0),
        ("One ", 1),
        ("One da", 1),
        ("One day,", 2),
        ('One day, "later."', 3),
        ('One day, "later." Then', 3),
        ('One day, "later." Then ', 4),
    ],
)
def test_a_word_is_known_when_something_follows_it_or_a_mark_ends_it(text: str, known: int) -> None:
    assert WORDS.known(text) == known


def test_a_word_is_written_with_the_delta_that_makes_it_whole() -> None:
    deltas = [(1.0, "One"), (2.0, " day,"), (3.0, ' "later." Then')]
    assert [WORDS.written_at(number, deltas) for number in range(5)] == [2.0, 2.0, 3.0, 3.0, 3.0]
