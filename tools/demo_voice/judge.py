"""Whether speech says its text and nothing else, for Whisper, and whether its questions rise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, Protocol

import numpy as np
import torch

from tools.demo_voice.pitch import Pitch
from tools.demo_voice.questions import rises
from tools.demo_voice.recognise import Recording
from tools.demo_voice.whisper import as_said
from tools.demo_voice.whisper_batches import WhisperBatches
from tools.demo_voice.words import normalise

SAMPLE_RATE = 24_000
_WINDOW = 27 * SAMPLE_RATE
"""Whisper hears half a minute at a time, however little is in it."""
_GAP = SAMPLE_RATE // 2
"""Silence before each sentence in a window."""
_AT_ONCE = {"cuda": 128, "cpu": 1}
"""Windows."""
_LEAST_RISE = 4.0
"""Semitones within the last quarter second of a question that asks for yes or no."""

Sentence = tuple[str, np.ndarray]
"""A text, and its speech: [N] int16 at `SAMPLE_RATE`."""


class Heard(NamedTuple):
    """Of a sentence: whether all of it was understood and rises where it should, and the words
    of its text, counted between spaces, that were not understood."""

    right: bool
    misheard: frozenset[int] = frozenset()


class Speech(Protocol):
    """What is judged, sentence by sentence."""

    def sentences(self) -> Sequence[Sentence]: ...


class Judge:
    """Hears many sentences at a time, as many in a row as fit into a window. `rising`: whether
    questions have to rise, too, which needs pyworld."""

    def __init__(self, device: torch.device, *, rising: bool = True) -> None:
        self._whisper = WhisperBatches(device)
        self._at_once, self._rising = _AT_ONCE[device.type], rising

    @property
    def samples(self) -> int:
        """As much as is best judged at once."""
        return self._at_once * _WINDOW

    def heard(self, speeches: Sequence[Speech]) -> list[list[Heard]]:
        """How the sentences of each of them are said."""
        listed = [
            (number, sentence)
            for number, speech in enumerate(speeches)
            for sentence in speech.sentences()
        ]
        judged: list[list[Heard]] = [[] for _ in speeches]
        windows = list(_windows(listed))
        for begin in range(0, len(windows), self._at_once):
            some = windows[begin : begin + self._at_once]
            heard = self._whisper.transcribe([_in_a_row(window) for window in some], SAMPLE_RATE)
            for window, text in zip(some, heard, strict=True):
                said = compared([sentence[0] for _, sentence in window], text)
                for (number, sentence), one in zip(window, said, strict=True):
                    falls = one.right and self._rising and _falls(*sentence)
                    judged[number].append(Heard(right=False) if falls else one)
        return judged


Window = list[tuple[int, Sentence]]
"""Sentences, and which speech each is of."""


def _windows(listed: Window) -> Iterator[Window]:
    window: Window = []
    size = 0
    for one in listed:
        samples = len(one[1][1]) + _GAP
        if window and size + samples > _WINDOW:
            yield window
            window, size = [], 0
        window.append(one)
        size += samples
    if window:
        yield window


def _in_a_row(window: Window) -> np.ndarray:
    gap = np.zeros(_GAP, np.int16)
    # A sentence that is longer than a window is not heard to its end, and so not understood.
    return np.concatenate([part for _, (_, sound) in window for part in (gap, sound[:_WINDOW])])


def _falls(text: str, sound: np.ndarray) -> bool:
    """Whether a question that should rise at its end does not."""
    if not rises(text):
        return False
    return not Pitch.of(Recording(sound, SAMPLE_RATE)).terminal() >= _LEAST_RISE  # or not a number


def compared(texts: Sequence[str], heard: str) -> list[Heard]:
    """The texts, said one after the other, and what was heard of them all. What is heard between
    two words is an error of both."""
    words: list[str] = []
    places: list[tuple[int, int]] = []
    for number, text in enumerate(texts):
        for place, word in enumerate(_apart(text)):
            words += word
            places += [(number, place)] * len(word)
    found = normalise(as_said(heard))
    misheard: list[set[int]] = [set() for _ in texts]
    matcher = SequenceMatcher(None, words, found, autojunk=False)
    for _, begin, end, found_begin, found_end in matcher.get_opcodes():
        # A compound that is written as one word or as two is no error.
        if "".join(words[begin:end]) == "".join(found[found_begin:found_end]):
            continue
        around = (max(begin - 1, 0), end + 1) if begin == end else (begin, end)
        for number, place in places[slice(*around)]:
            misheard[number].add(place)
    return [Heard(not wrong, frozenset(wrong)) for wrong in misheard]


def _apart(text: str) -> list[list[str]]:
    """Of each word of a text, what is compared of it; the first has all where words are only read
    together."""
    apart = [normalise(word) for word in text.split()]
    whole = normalise(text)
    return apart if sum(apart, []) == whole else [whole]
