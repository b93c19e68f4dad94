"""The evaluation texts, and the guard that keeps them out of the training texts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tools.demo_voice.cleaning import compared, sentences_of
from tools.demo_voice.recognise import read_texts

_FOLDER = Path(__file__).parent
FILES = (
    "held_out.txt",
    "held_out_harder.txt",
    "held_out_numbers.txt",
    "held_out_letters.txt",
    "held_out_questions.txt",
    "held_out_replies.txt",
    "texts_200.txt",
)
_RUN = 5  # consecutive words in common make a training text too like an evaluation text


def evaluation_texts() -> list[str]:
    """Every text of the evaluation files as it is written, without the spoken column."""
    return [line.split("\t")[0] for name in FILES for line in read_texts(_FOLDER / name)]


class Guard:
    """Knows the evaluation texts, whatever their case and punctuation."""

    def __init__(self, texts: Iterable[str]) -> None:
        """`texts`: sentences or paragraphs, of which each sentence is guarded as well."""
        self._whole: set[str] = set()
        self._runs: set[str] = set()
        for text in texts:
            self._whole.add(compared(text))
            for sentence in sentences_of(text):
                words = compared(sentence).split()
                if len(words) > 2:  # "Thank you." in a paragraph must not forbid thanks
                    self._whole.add(" ".join(words))
                self._runs.update(_runs(words))

    def forbids(self, text: str) -> bool:
        """Whether `text` is or holds an evaluation text, or shares a long run of words with one."""
        plain = compared(text)
        if plain in self._whole:
            return True
        return not self._runs.isdisjoint(_runs(plain.split()))


def _runs(words: list[str]) -> list[str]:
    return [" ".join(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)]
