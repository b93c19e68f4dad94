"""What a voice says behind a final stop, cut off where the release is over."""

from __future__ import annotations

import numpy as np
import pytest

from realtime_tts.engine.made_codes import packed, unpacked
from tools.demo_voice.endings import ends_in_stop, frames_to_keep
from tools.demo_voice.utterance import Utterance

LABEL = 480  # samples, 20 ms
VOWEL, CLOSURE, BREATH = -15.0, -70.0, -28.0


def speech(*parts: tuple[float, int]) -> np.ndarray:
    """A tone of so many decibels for so many labels, and so on; whole frames of it."""
    levels = np.repeat([level for level, _ in parts], [count * LABEL for _, count in parts])
    tone = np.sin(np.arange(len(levels)) * 0.2) * 10 ** ((levels + 3) / 20) * 32767
    return np.pad(tone, (0, -len(tone) % 1920)).astype(np.int16)


@pytest.mark.parametrize(
    ("text", "stop"),
    [
        ("The cat.", True),
        ("A mate?", True),
        ('He said "hot"!', True),
        ("Big", True),
        ("Good morning.", False),
        ("It is mine.", False),
        ("Yes!", False),
        ("", False),
    ],
)
def test_a_final_stop_is_seen_in_the_spelling(text: str, stop: bool) -> None:
    assert ends_in_stop(text) is stop


@pytest.mark.parametrize("closure", [11, 12, 13, 14])
def test_a_long_release_is_cut_at_a_frame_when_forty_milliseconds_were_heard(closure: int) -> None:
    said = speech((VOWEL, closure), (CLOSURE, 3), (BREATH, 15))
    kept = frames_to_keep(said)
    heard = kept * 4 - closure - 3  # labels of the release
    assert 2 <= heard <= 5


@pytest.mark.parametrize(
    "parts",
    [
        [(VOWEL, 12), (CLOSURE, 3), (BREATH, 7)],  # as a person says it
        [(VOWEL, 12), (CLOSURE, 3), (VOWEL - 3, 15)],  # another syllable
        [(VOWEL, 12), (-45.0, 3), (BREATH, 15)],  # no closure
        [(VOWEL, 12), (CLOSURE, 3), (VOWEL, 40), (BREATH, 15)],  # one, long ago
        [(CLOSURE, 20)],
        [],
    ],
)
def test_other_ends_are_left_as_they_are(parts: list[tuple[float, int]]) -> None:
    said = speech(*parts)
    assert frames_to_keep(said) == len(said) // 1920


def test_two_silent_frames_are_left_between_sentences_behind_a_stop() -> None:
    first = [(CLOSURE, 4), (VOWEL, 8), (CLOSURE, 3), (BREATH, 17), (CLOSURE - 20, 4)]
    sound = speech(*first, (VOWEL, 12))
    words = [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 3]
    for sentence, frames in (("It's late.", [0, 1, 2, 3, 4, 0, 0]), ("It's mine.", [*range(8)])):
        one = Utterance((sentence, "I know."), 0, [5, 6, 7, 8], [0, 1, 2, 3])
        one.pcm += sound.tobytes()
        one.codes += packed(np.arange(12 * 16, dtype=np.int16).reshape(12, 16))
        one.tokens += packed(np.array(words, np.int16)[:, None])
        one.end_in_time()
        frames = [*frames, 8, 9, 10, 11]
        assert [code // 16 for code in unpacked(bytes(one.codes), 16)[:, 0]] == frames
        assert len(one.samples) == 1920 * len(frames) and len(one.spoken_words()) == len(frames)
        assert np.array_equal(one.samples[-3 * 1920 :], sound[-3 * 1920 :])
        (_, before), (_, behind) = one.sentences()
        assert np.abs(before[-960:]).max() < 200 and np.abs(behind[:960]).max() < 200


def test_an_utterance_ends_with_silence_behind_its_stop() -> None:
    sound = speech((CLOSURE, 4), (VOWEL, 8), (CLOSURE, 3), (BREATH, 13))
    codes = np.arange(7 * 16, dtype=np.int16).reshape(7, 16)
    for text, frames in (("It is late.", [0, 1, 2, 3, 4, 0]), ("It is mine.", [*range(7)])):
        one = Utterance((text,), 0, [5, 6, 7], [0, 1, 2])
        one.pcm += sound.tobytes()
        one.codes += packed(codes)
        one.tokens += packed(np.array([[0], [0], [1], [2], [2], [2], [2]], np.int16))
        one.end_in_time()
        assert unpacked(bytes(one.codes), 16)[:, 0].tolist() == [16 * frame for frame in frames]
        assert len(one.samples) == 1920 * len(frames) and len(one.spoken_words()) == len(frames)
        assert np.array_equal(one.samples[: 5 * 1920], sound[: 5 * 1920])
