"""Times of words: every character once, in order, never beyond the audio."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text import speech_times
from realtime_tts.text.languages import language_for
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.speech_times import SpokenSpan, SpokenText
from realtime_tts.text.spoken import expected_durations
from realtime_tts.text.tokenizer import Qwen2Tokenizer

TOKENIZER = Qwen2Tokenizer.from_folder(Path(__file__).parent / "data" / "tiny_tokenizer")
LOOK = speech_times._LOOK
TEXT = "The quick brown fox jumps over the lazy dog. Then it rests, for a while."

FRAGMENTS = [
    "Hello",
    " there",
    ", ",
    ". ",
    "你好",
    "。",
    "ありがとう",
    "สวัสดี",
    " 42",
    " $3.50",
    "**",
]
FRAGMENTS += [
    "[a label](u)",
    "\n",
    "🙂",
    "e\u0301",
    "| ",
    "# ",
    "`",
    '"',
    "…",
    " https://a.example/b",
]
FRAGMENTS += [' <break time="300ms"/>', '<break time="0.5s"/> ']


class Speech:
    """A turn's text, and its speech part by part: `made` seconds of each, pauses before them."""

    def __init__(
        self,
        text: str = "",
        language: str | None = None,
        filtered: bool = True,
        numbers: str | None = None,
    ) -> None:
        numbers_in = language_for(numbers)
        self.pipeline = TextPipeline(TOKENIZER, filtered=filtered, language=numbers_in)
        self.spoken = SpokenText(self.pipeline, language)
        self.parts = 1
        self.seconds = 0.0
        if text:
            self.feed(text)

    def feed(self, text: str) -> None:
        self.pipeline.feed(text, 0.0)

    def finish(self) -> None:
        self.pipeline.finish(0.0)

    def made(self, seconds: float) -> None:
        self.spoken.made(seconds)
        self.seconds += seconds

    def next_part(self) -> bool:
        """Go on behind the next pause, if there is one."""
        if self.parts == len(self.pipeline.segments):
            return False
        segment = self.pipeline.segments[self.parts]
        self.parts += 1
        self.spoken.begin(segment)
        self.seconds += segment.pause
        return True

    def take(self, played: float, whole: bool = False) -> list[SpokenSpan]:
        words: list[SpokenSpan] = []
        while some := self.spoken.take(played, self.seconds if whole else None):
            words += some
        return words


def complete(text: str, seconds: float, step: float = 0.08) -> list[SpokenSpan]:
    """All words of a text that is spoken in one part, whose speech is known whole."""
    speech = Speech(text)
    speech.finish()
    speech.made(seconds)
    steps = [min(number * step, seconds) for number in range(1, round(seconds / step) + 2)]
    return [word for played in steps for word in speech.take(played, whole=True)]


def joined(words: list[SpokenSpan]) -> str:
    return "".join(word.text for word in words)


def assert_in_order(words: list[SpokenSpan]) -> None:
    assert all(word.start <= word.end for word in words)
    assert all(one.end <= later.start for one, later in pairwise(words))


@pytest.mark.parametrize("seconds", [1.0, 4.0, 20.0])
def test_a_complete_speech_holds_all_its_text_word_by_word(seconds: float) -> None:
    found = complete(TEXT, seconds)
    assert [word.text.strip() for word in found] == TEXT.split()
    assert joined(found) == TEXT
    assert found[0].start == 0.0 and found[-1].end == seconds
    assert all(one.start < one.end for one in found)
    assert all(one.end == pytest.approx(later.start) for one, later in pairwise(found))


def test_how_often_it_is_asked_does_not_move_the_words_of_a_complete_speech() -> None:
    often, once = complete(TEXT, 5.0, step=0.02), complete(TEXT, 5.0, step=5.0)
    assert [word.text for word in often] == [word.text for word in once]
    for one, other in zip(often, once, strict=True):
        assert one[1:] == pytest.approx(other[1:])


@given(
    st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join),
    st.lists(st.floats(0.02, 3.0), min_size=1, max_size=12),
    st.sampled_from([2, 7, LOOK]),
    st.data(),
)
def test_words_joined_are_the_text_and_their_times_never_go_back(
    text: str, made: list[float], look: int, data: st.DataObject
) -> None:
    """However the text is cut, however much speech is made of it, whenever it is asked, and however
    little of it is looked at together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speech_times, "_LOOK", look)
        words_hold(text, made, data)


def test_a_text_of_pauses_has_no_word_beyond_its_audio() -> None:
    """Their sums differ in the last bit."""
    speech = Speech(' <break time="300ms"/> <break time="300ms"/>', filtered=False)
    for part in ((1.0, 1.0, 1.0), (1.0, 0.02)):
        for seconds in part:
            speech.made(seconds)
            speech.take(0.0)
        speech.next_part()
    speech.finish()
    while speech.next_part():
        speech.made(0.3)
    words = speech.take(speech.seconds / 2, whole=True) + speech.take(speech.seconds, whole=True)
    assert words and words[-1].end <= speech.seconds


def words_hold(text: str, made: list[float], data: st.DataObject) -> None:
    speech = Speech(filtered=data.draw(st.booleans()))
    words: list[SpokenSpan] = []
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    pieces = [text[one:other] for one, other in pairwise([0, *cuts, len(text)])]
    sent = 0.0
    for index, seconds in enumerate(made):
        if index < len(pieces):
            speech.feed(pieces[index])
        speech.made(seconds)
        if data.draw(st.booleans()):
            speech.next_part()
        new = speech.take(sent := data.draw(st.floats(sent, speech.seconds)))
        assert all(word.end <= sent for word in new), "beyond the audio"
        words += new
        assert text.startswith(joined(words))
    for piece in pieces[len(made) :]:
        speech.feed(piece)
    speech.finish()
    while speech.next_part():
        speech.made(0.3)
    words += speech.take((sent + speech.seconds) / 2, whole=True)
    words += speech.take(speech.seconds, whole=True)
    assert joined(words) == text
    assert_in_order(words)
    assert not words or words[-1].end <= speech.seconds
    assert speech.take(speech.seconds, whole=True) == []


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join), st.floats(0.5, 20))
def test_of_a_complete_speech_words_say_what_an_interrupt_says(text: str, seconds: float) -> None:
    speech = Speech(text)
    speech.finish()
    speech.made(seconds)
    while speech.next_part():
        speech.made(seconds)
    said = ""
    for number in range(1, 10):
        played = speech.seconds * (number - 0.123456789) / 10  # on no word's end to the last bit
        said += joined(speech.take(played, whole=True))
        split = speech.spoken.split(played, speech.seconds, complete=True).spoken
        assert split == said or split.startswith(said) and split[len(said) :].isspace()


def test_of_an_open_speech_no_word_that_may_grow_is_given() -> None:
    speech = Speech("Hello wor")
    speech.made(200.0)
    assert joined(speech.take(100.0)) == "Hello"
    speech.feed("ld")
    assert speech.take(101.0) == []
    speech.feed(" of it all, and so on.")
    assert joined(speech.take(102.0)).startswith(" world of")


def test_in_scripts_without_spaces_characters_are_words() -> None:
    speech = Speech("今天天气很好，我们去公园", "Chinese")
    speech.made(5.0)
    assert [word.text for word in speech.take(0.5)] == ["今", "天"]


def test_a_letter_that_combines_stays_with_the_one_before() -> None:
    assert [word.text for word in complete("น้ำดี ｶﾞｷﾞ", 3.0)] == ["น้ำ", "ดี", " ｶﾞ", "ｷﾞ"]


def test_no_sound_speaks_no_text_and_the_same_sound_none_again() -> None:
    speech = Speech("Hello there")
    speech.finish()
    speech.made(1.0)
    assert speech.take(0.0, whole=True) == []
    assert joined(speech.take(1.0, whole=True)) == "Hello there"
    assert speech.take(1.0, whole=True) == []


@pytest.mark.parametrize("seconds", [3.0, 30.0])
def test_what_was_given_out_before_the_length_was_known_stays(seconds: float) -> None:
    """3 s are faster than expected, 30 s slower."""
    speech = Speech(TEXT)
    speech.made(2.0)
    first = speech.take(2.0)
    assert len(first) > 4
    speech.finish()
    speech.made(seconds - 2.0)
    steps = [2.0 + number * (seconds - 2.0) / 50 for number in range(1, 51)]
    rest = [word for played in steps for word in speech.take(played, whole=True)]
    assert joined(first + rest) == TEXT
    assert_in_order(first + rest)
    assert rest[-1].end == pytest.approx(seconds)
    assert all(one.start < one.end for one in rest)


def test_what_is_left_comes_when_the_end_turns_out_to_have_been_the_end() -> None:
    speech = Speech("Hello there")
    speech.made(0.5)
    assert joined(speech.take(0.5)) == "Hello"
    assert speech.take(0.5) == []
    speech.finish()
    assert speech.take(0.5, whole=True) == [(" there", pytest.approx(0.335), 0.5)]


def test_marks_that_are_not_spoken_take_no_time_and_are_not_lost() -> None:
    plain = complete("One fine word and two more", 3.0)
    marked = complete("One **fine** word 🙂 and [two](https://an.example/that/is/long) more", 3.0)
    assert [word.text for word in marked] == [
        "One",
        " **fine**",
        " word",
        " 🙂 and",
        " [two](https://an.example/that/is/long)",
        " more",
    ]
    for one, other in zip(plain, marked, strict=True):
        assert one[1:] == pytest.approx(other[1:], abs=0.06), "a space more or less"


def test_a_number_has_the_time_of_all_its_words_and_the_white_space_before_it() -> None:
    speech = Speech("It costs $1,234.50 for 3 km, or so. And", numbers="english")
    speech.finish()
    speech.made(8.0)
    words = [word for step in range(1, 401) for word in speech.take(step / 50, whole=True)]
    texts = [word.text for word in words]
    assert texts == ["It", " costs", " $1,234.50", " for", " 3 km,", " or", " so.", " And"]
    assert all(one.end == pytest.approx(later.start) for one, later in pairwise(words))
    number = words[2]
    assert number.end - number.start > 3, "one thousand two hundred thirty-four dollars and fifty …"


@pytest.mark.parametrize(
    "text",
    [TEXT * 100, "今天天气很好，我们去公园。" * 500, "a" * 5_000 + " and more", "12 " * 2_000],
)
@pytest.mark.parametrize("known", [False, True])
def test_many_words_are_given_out_a_few_at_a_time(text: str, known: bool) -> None:
    """The voice is far faster than expected; whether or not that is known before its end."""
    speech = Speech(text)
    speech.finish()
    speech.made(4.0)
    words: list[SpokenSpan] = []
    if known:
        words += speech.take(2.0, whole=True)
        assert 0.4 * len(text) < len(joined(words)) < 0.6 * len(text) or " " not in text[:5_000]
    takes = 0
    while some := speech.spoken.take(4.0, 4.0):
        assert sum(len(word.text) for word in some) <= 2 * LOOK
        words += some
        takes += 1
    assert takes > 2
    assert joined(words) == text
    assert_in_order(words)
    assert words[-1].end == 4.0


def test_of_a_long_text_no_more_is_looked_at_than_the_audio_has_come_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []

    def noting(text: str, language: str | None) -> Iterable[float]:
        looked.append(text)
        return expected_durations(text, language)

    monkeypatch.setattr(speech_times, "expected_durations", noting)
    speech = Speech(TEXT * 1_000)
    speech.made(60.0)
    words = [word for number in range(1, 601) for word in speech.take(number / 10)]
    count = len(joined(words))
    assert 600 < count < 1_200 and (TEXT * 1_000).startswith(joined(words))
    assert sum(map(len, looked)) <= count + 2 * LOOK


def test_nothing_is_spoken_in_a_pause() -> None:
    speech = Speech('One two. <break time="2s"/>Three four.')
    speech.finish()
    speech.made(1.0)
    assert speech.next_part()
    speech.made(1.0)
    words = speech.take(4.0, whole=True)
    assert joined(words) == 'One two. <break time="2s"/>Three four.'
    assert [word.text for word in words] == [
        "One",
        " two.",
        ' <break time="2s"/>Three',
        " four.",
    ]
    assert [word.end for word in words if word.end <= 1.0][-1] == 1.0
    assert [word.start for word in words if word.start > 1.0][0] == 3.0
    assert words[-1].end == 4.0


@given(st.lists(st.integers(1, 8), min_size=1, max_size=12))
def test_a_part_is_heard_with_its_last_sample_however_its_sound_was_cut(chunks: list[int]) -> None:
    """Frames of 1,920 samples; seconds that are summed up differ in their last digits."""
    speech = Speech('One two. <break time="300ms"/>Three.')
    for frames in chunks:
        speech.made(frames * 1_920 / 24_000)
    speech.next_part()
    heard = sum(chunks) * 1_920 / 24_000
    assert joined(speech.take(heard)) == "One two."
    assert speech.spoken.split(heard, speech.seconds, False).spoken == "One two. "
