"""The sets of texts that are spoken to judge a voice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.demo_voice.recognise import read_texts

WORDS_A_MINUTE = 170
"""How fast the teacher's voices speak, on average."""


@dataclass(frozen=True, slots=True)
class TextSet:
    """Texts to speak, and for each the words that should be heard."""

    name: str
    texts: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def read(cls, path: Path, limit: int | None = None) -> TextSet:
        """A file of one text a line; after a tab, how it is spoken, where that is not obvious."""
        pairs = [line.partition("\t") for line in read_texts(path)][:limit]
        texts = tuple(text for text, _, _ in pairs)
        return cls(path.stem, texts, tuple(words or text for text, _, words in pairs))

    @classmethod
    def long(cls, sentences: Sequence[str], minutes: int) -> TextSet:
        """One text: the first sentences that together take about `minutes`.

        Raises ValueError if there are too few.
        """
        wanted, words = minutes * WORDS_A_MINUTE, 0
        for count, sentence in enumerate(sentences, 1):
            words += len(sentence.split())
            if words >= wanted:
                text = " ".join(sentences[:count])
                return cls(f"minutes_{minutes}", (text,), (text,))
        raise ValueError(f"{minutes} minutes need {wanted} words of sentences; there are {words}")
