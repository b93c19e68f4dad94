"""Exact times of words: made of the token that each frame speaks, in the caller's text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.languages import language_for
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.progress import FAR, NEAR, Progress
from realtime_tts.text.speech_times import SpokenSpan, SpokenText
from realtime_tts.text.tokenizer import Qwen2Tokenizer

TOKENIZER = Qwen2Tokenizer.from_folder(Path(__file__).parent / "data" / "tiny_tokenizer")
FRAME = 0.08
TEXT = "The quick brown fox jumps over the lazy dog."


class Speech:
    """A turn whose model tells, and speaks so many frames for each token of a part."""

    def __init__(self, text: str, numbers: str | None = None, frames: int = 2) -> None:
        self.pipeline = TextPipeline(TOKENIZER, language=language_for(numbers))
        self.spoken = SpokenText(self.pipeline)
        self.frames, self.seconds = frames, 0.0
        self.pipeline.feed(text, 0.0)
        self.pipeline.finish(0.0)

    def tokens(self, part: int = 0) -> list[int]:
        count = len(self.pipeline.segments[part].sizes)
        return [token for token in range(count) for _ in range(self.frames)]

    def say(self, tokens: Sequence[int], silent: float = 0.0) -> None:
        self.spoken.made(len(tokens) * FRAME, tokens, silent)
        self.seconds += len(tokens) * FRAME

    def say_all(self) -> None:
        """Every part, with the pauses between them."""
        for number, segment in enumerate(self.pipeline.segments):
            if number:
                self.spoken.begin(segment)
                self.seconds += segment.pause
            self.say(self.tokens(number))

    def take(self, played: float | None = None) -> list[SpokenSpan]:
        words: list[SpokenSpan] = []
        whole = self.seconds if played is None else None
        while some := self.spoken.take(self.seconds if played is None else played, whole):
            words += some
        return words


def starts_of(text: str, frames: int = 2) -> list[float]:
    """When each word begins whose tokens all take as long: by the tokens of the text before it."""
    words = text.split(" ")
    before = (" ".join(words[:number]) for number in range(len(words)))
    return [len(TOKENIZER.encode(each)) * frames * FRAME for each in before]


def test_a_word_begins_with_its_first_token_and_ends_where_the_next_begins() -> None:
    speech = Speech(TEXT)
    speech.say_all()
    words = speech.take()
    assert [word.text.strip() for word in words] == TEXT.split()
    assert [word.start for word in words] == pytest.approx(starts_of(TEXT))
    assert [word.end for word in words[:-1]] == pytest.approx(starts_of(TEXT)[1:])
    assert words[-1].end == pytest.approx(speech.seconds)
    assert all(word.exact for word in words)


def test_a_word_is_told_when_the_next_one_begins_and_its_sound_was_taken() -> None:
    speech, starts = Speech(TEXT), starts_of(TEXT)
    speech.say_all()
    assert speech.take(starts[1] - 0.01) == []
    assert [word.text for word in speech.take(starts[1])] == ["The"]
    assert [word.text for word in speech.take(starts[3] + 0.01)] == [" quick", " brown"]


def test_a_word_that_falls_silent_ends_there() -> None:
    """Here, the space between the words is a token of its own, of two frames."""
    speech, starts = Speech("Yes. No."), starts_of("Yes. No.")
    first = speech.tokens()[: round(starts[1] / FRAME)]
    speech.say(first)
    speech.say([first[-1]] * 5, silent=0.4)
    speech.say(speech.tokens()[len(first) :])
    yes, no = speech.take()
    assert (yes.start, yes.end) == (0.0, pytest.approx(starts[1]))
    assert no.start == pytest.approx(starts[1] + 0.4 + 2 * FRAME)


def test_one_frame_that_looks_far_ahead_moves_nothing() -> None:
    wild, calm = Speech(TEXT * 3), Speech(TEXT * 3)
    tokens = wild.tokens()
    calm.say(tokens)
    wild.say([*tokens[:9], tokens[-1], *tokens[10:]])
    assert [word.start for word in wild.take()] == [word.start for word in calm.take()]


def test_what_was_skipped_has_no_time_of_its_own_and_is_noticed() -> None:
    speech = Speech(TEXT * 3)
    count = len(speech.pipeline.segments[0].sizes)
    speech.say([*range(5), *range(count - 10, count)])
    assert not speech.spoken.all_spoken()
    words = speech.take()
    assert "".join(word.text for word in words) == TEXT * 3
    assert max(word.start for word in words) <= speech.seconds


@pytest.mark.parametrize("missing", [0, 1, 2, 3, 4, 5, 6])
def test_speech_that_ends_before_the_last_word_is_noticed(missing: int) -> None:
    speech = Speech("Say the last word, tomorrow.")
    tokens = TOKENIZER.encode("Say the last word, tomorrow.")
    before = len(TOKENIZER.encode("Say the last word,"))
    speech.say(range(len(tokens) - missing))
    assert speech.spoken.all_spoken() == (len(tokens) - missing > before)


def test_an_interrupt_counts_the_words_that_ended() -> None:
    speech, starts = Speech(TEXT), starts_of(TEXT)
    speech.say_all()
    for played, said in ((0.0, ""), (starts[1], "The "), (starts[4] - 0.01, "The quick brown ")):
        split = speech.spoken.split(played, speech.seconds, complete=False)
        assert split.spoken.rstrip() == said.rstrip() and "".join(split) == TEXT
    assert speech.spoken.split(speech.seconds, speech.seconds, complete=True) == (TEXT, "")


def test_behind_a_pause_words_count_from_the_sound_of_their_part() -> None:
    speech = Speech('Wait here. <break time="300ms"/> Go on.')
    speech.say_all()
    words = speech.take()
    first, second = (len(speech.pipeline.segments[n].sizes) * 2 * FRAME for n in (0, 1))
    go = next(word for word in words if "Go" in word.text)
    assert go.start == pytest.approx(first + 0.3)
    assert words[-1].end == pytest.approx(first + 0.3 + second)
    assert max(w.end for w in words[: words.index(go)]) <= first + 1e-9


def test_a_number_is_one_word_from_its_first_to_its_last() -> None:
    text = "It costs 42 dollars."
    speech = Speech(text, numbers="english")
    speech.say_all()
    words = {word.text.strip(): word for word in speech.take()}
    said = "It costs forty-two dollars."
    assert speech.pipeline.spoken == said
    starts = starts_of(said)
    assert list(words) == text.split()
    assert (words["42"].start, words["42"].end) == pytest.approx((starts[2], starts[3]))


def test_first_sound_that_was_left_out_moves_the_words_with_it() -> None:
    """Of the first frames half a frame was cut off: the last one still ends with the sound."""
    speech, starts = Speech(TEXT), starts_of(TEXT)
    tokens = speech.tokens()
    speech.spoken.made(3.5 * FRAME, tokens[:4])
    speech.spoken.made((len(tokens) - 4) * FRAME, tokens[4:])
    speech.seconds = (len(tokens) - 0.5) * FRAME
    found = [word.start for word in speech.take()]
    assert found == pytest.approx([max(0.0, start - FRAME / 2) for start in starts])


FRAGMENTS = ["Hello", " there", ", ", ". ", "你好", "。", "ありがとう", " 42", "**", "\n", "🙂"]
FRAGMENTS += ["e\u0301", " ", "| ", "…", ' <break time="300ms"/>', "[a label](u)", "\u1100\u1161"]


@given(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=14).map("".join),
    st.lists(st.integers(0, 60), min_size=0, max_size=60),
    st.integers(1, 7),
)
def test_whatever_frames_say_all_words_come_in_order_within_the_sound(
    text: str, wild: list[int], size: int
) -> None:
    speech, taken = Speech(text), []
    for number, segment in enumerate(speech.pipeline.segments):
        if number:
            speech.spoken.begin(segment)
            speech.seconds += segment.pause
        tokens = [
            token for pair in zip(speech.tokens(number), wild, strict=False) for token in pair
        ]
        tokens = tokens or speech.tokens(number)
        for at in range(0, len(tokens), size):
            speech.say(tokens[at : at + size])
            words = speech.take(speech.seconds)
            assert all(word.end <= speech.seconds + 1e-6 for word in words)
            taken += words
    taken += speech.take()
    if speech.spoken.exact:
        assert "".join(word.text for word in taken) == text
    assert all(word.start <= word.end for word in taken)
    assert all(one.end <= later.start + 1e-9 for one, later in pairwise(taken))


@given(st.lists(st.integers(0, 40), max_size=80))
def test_the_place_never_goes_back_and_leaps_only_where_frames_agree(tokens: list[int]) -> None:
    progress, before = Progress(), -1
    for index, token in enumerate(tokens):
        progress.frame(token)
        assert before <= progress.token
        if progress.token - before > NEAR:
            assert all(each > before + NEAR for each in tokens[index - 3 : index + 1])
            assert progress.skipped or progress.token - before <= FAR
        before = progress.token
