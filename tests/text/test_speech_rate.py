"""SpeechRates: how fast a voice speaks, from what it has spoken."""

from __future__ import annotations

import pytest

from realtime_tts.text.spoken import SpeechRates


def test_a_voice_that_nobody_has_heard_speaks_as_expected() -> None:
    assert SpeechRates().of("ava") == 1.0


def test_each_voice_has_its_own() -> None:
    rates = SpeechRates()
    rates.learn("ava", 10.0, 8.0)
    rates.learn("ray", 5.0, 6.0)
    assert (rates.of("ava"), rates.of("ray"), rates.of("eve")) == (0.8, 1.2, 1.0)


def test_long_texts_count_for_more_and_short_ones_for_nothing() -> None:
    rates = SpeechRates()
    rates.learn("ava", 0.9, 5.0)
    assert rates.of("ava") == 1.0
    rates.learn("ava", 9.0, 9.0)
    rates.learn("ava", 1.0, 2.0)
    assert rates.of("ava") == pytest.approx(1.1)


def test_a_change_is_followed() -> None:
    rates = SpeechRates()
    for _ in range(100):
        rates.learn("ava", 10.0, 8.0)
    for _ in range(30):
        rates.learn("ava", 10.0, 12.0)
    assert rates.of("ava") == pytest.approx(1.2, abs=0.01)


def test_nothing_makes_it_absurd_and_no_number_of_voices_fills_the_memory() -> None:
    rates = SpeechRates()
    rates.learn("slow", 1.0, 1000.0)
    rates.learn("fast", 1000.0, 1.0)
    rates.learn("none", 10.0, 0.0)
    assert (rates.of("slow"), rates.of("fast"), rates.of("none")) == (2.0, 0.5, 1.0)
    for number in range(2_000):
        rates.learn(number, 10.0, 8.0)
    assert rates.of("slow") == 1.0 and rates.of(1_999) == 0.8
