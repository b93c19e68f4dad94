"""Whether speech says its text and nothing else, for Whisper, and whether its questions rise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Protocol

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
_LEAST_RISE = (4.0, 1.0)
"""Semitones within the last quarter second of a question that asks for yes or no, for each voice:
the teacher's rise by 6.9 and 1.4 on average."""

Sentence = tuple[str, np.ndarray]
"""A text, and its speech: [N] int16 at `SAMPLE_RATE`."""


class Speech(Protocol):
    """What is judged, sentence by sentence. `voice`: a place in `VOICE_NAMES`."""

    voice: int

    def sentences(self) -> Sequence[Sentence]: ...


class Judge:
    """Hears many sentences at a time, as many in a row as fit into a window. `rising`: whether
    questions have to rise, too, which needs pyworld. `sure`: how probable every token of what is
    heard has to be; where one is not, its word counts as misheard."""

    def __init__(self, device: torch.device, *, rising: bool = True, sure: float = 0.0) -> None:
        self._whisper = WhisperBatches(device)
        self._at_once, self._rising, self._sure = _AT_ONCE[device.type], rising, sure

    @property
    def samples(self) -> int:
        """As much as is best judged at once."""
        return self._at_once * _WINDOW

    def right(self, speeches: Sequence[Speech]) -> list[list[bool]]:
        """Which sentences of each of them are said, and nothing else with them."""
        listed = [
            (number, sentence)
            for number, speech in enumerate(speeches)
            for sentence in speech.sentences()
        ]
        right: list[list[bool]] = [[] for _ in speeches]
        windows = list(_windows(listed))
        for begin in range(0, len(windows), self._at_once):
            some = windows[begin : begin + self._at_once]
            rows = [_in_a_row(window) for window in some]
            heard = self._whisper.transcribe(rows, SAMPLE_RATE, self._sure)
            for window, text in zip(some, heard, strict=True):
                said = understood([sentence[0] for _, sentence in window], text)
                for (number, sentence), well in zip(window, said, strict=True):
                    least = _LEAST_RISE[speeches[number].voice]
                    right[number].append(well and not (self._rising and _falls(*sentence, least)))
        return right


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


def _falls(text: str, sound: np.ndarray, least: float) -> bool:
    """Whether a question that should rise at its end does not."""
    if not rises(text):
        return False
    return not Pitch.of(Recording(sound, SAMPLE_RATE)).terminal() >= least  # or not a number


def understood(texts: Sequence[str], heard: str) -> list[bool]:
    """Which of the texts, said one after the other, were heard without an error. What is heard
    between two of them is an error of both."""
    words: list[str] = []
    spans = []
    for text in texts:
        begin = len(words)
        words += normalise(text)
        spans.append((begin, len(words)))
    found = normalise(as_said(heard))
    right = [True] * len(texts)
    matcher = SequenceMatcher(None, words, found, autojunk=False)
    for _, begin, end, found_begin, found_end in matcher.get_opcodes():
        # A compound that is written as one word or as two is no error.
        if "".join(words[begin:end]) == "".join(found[found_begin:found_end]):
            continue
        for number, (first, last) in enumerate(spans):
            inserted = begin == end and first <= begin <= last
            right[number] &= not (inserted or (begin < last and end > first))
    return right
