"""SpeechTimes: every character once, in order, never beyond the audio."""

from __future__ import annotations

import pytest

from realtime_tts.text.speech_times import SpeechTimes, SpokenSpan

TEXT = "The quick brown fox jumps over the lazy dog. Then it rests, for a while."


def spans(times: SpeechTimes, seconds: float, step: float, whole: bool) -> list[SpokenSpan]:
    found = [
        times.take(min(number * step, seconds), seconds if whole else None)
        for number in range(1, round(seconds / step) + 2)
    ]
    return [span for span in found if span is not None]


@pytest.mark.parametrize("seconds", [1.0, 4.0, 20.0])
def test_a_complete_speech_holds_all_its_text(seconds: float) -> None:
    times = SpeechTimes()
    for at in range(0, len(TEXT), 5):
        times.feed(TEXT[at : at + 5])
    found = spans(times, seconds, 0.08, whole=True)
    assert "".join(span.text for span in found) == TEXT
    assert found[0].start == 0.0 and found[-1].end == seconds
    for one, next_one in zip(found, found[1:], strict=False):
        assert one.start < one.end == next_one.start
        assert next_one.text[0].isspace() or one.text[-1].isspace(), "cut between words"


def test_of_an_open_speech_no_word_that_may_grow_is_given() -> None:
    times = SpeechTimes()
    times.feed("Hello wor")
    found = times.take(100.0)
    assert found is not None and found.text == "Hello"
    times.feed("ld")
    assert times.take(101.0) is None
    times.feed(" of")
    found = times.take(102.0)
    assert found is not None and found.text == " world"


def test_in_scripts_without_spaces_characters_are_words() -> None:
    times = SpeechTimes("Chinese")
    times.feed("今天天气很好")
    found = times.take(0.5)
    assert found is not None and 1 <= len(found.text) <= 3


def test_no_sound_speaks_no_text_and_the_same_sound_none_again() -> None:
    times = SpeechTimes()
    times.feed("Hello there")
    assert times.take(0.0, 1.0) is None
    assert times.take(1.0, 1.0) == SpokenSpan("Hello there", 0.0, 1.0)
    assert times.take(1.0, 1.0) is None


def test_slower_than_expected_never_goes_back() -> None:
    times = SpeechTimes()
    times.feed(TEXT)
    open_end = times.take(2.0)
    assert open_end is not None
    rest = spans(times, 30.0, 0.08, whole=True)
    assert open_end.text + "".join(span.text for span in rest) == TEXT
    assert rest[0].start == open_end.end


def test_what_is_left_comes_when_the_end_turns_out_to_have_been_the_end() -> None:
    times = SpeechTimes()
    times.feed("Hello there")
    first = times.take(0.5)
    assert first is not None and first.text == "Hello"
    assert times.take(0.5) is None
    assert times.take(0.5, 0.5) == SpokenSpan(" there", 0.5, 0.5)
