"""Words that are to be said in another way: a lexicon's. Found in text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from realtime_tts.text.characters import is_word_character


class WordTable:
    """Finds the longest of some words at a place in a text; letters count as they are written."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = frozenset(words)
        self._starts = frozenset(word[:n] for word in self.words for n in range(1, len(word)))

    def longest(self, text: str, at: int, ended: bool) -> int | None:
        """The length of the word at `at`, 0 for none, None if more text could make it longer."""
        best, end = 0, at + 1
        while end <= len(text):
            part = text[at:end]
            if part in self.words and (bounded := _ends_word(text, end, ended)) is not False:
                if bounded is None:
                    return None
                best = end - at
            if part not in self._starts:
                return best
            end += 1
        return best if ended else None


def _ends_word(text: str, end: int, ended: bool) -> bool | None:
    if not is_word_character(text[end - 1]):
        return True
    if end == len(text):
        return True if ended else None
    return not (is_word_character(text[end]) or "\u0300" <= text[end] <= "\u036f")


class Lexicon:
    """Words and what to say for them. A word as it is written beats one in other letters.

    Whole words only, where words are separated by spaces: `cat` is not found in `cats`.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._exact = WordTable(entries)
        self._folded = WordTable(_fold(word) for word in entries)
        self._entries = dict(entries)
        self._longest = max(map(len, entries), default=0)
        # Where only the case tells two words apart, the first one stands for other spellings.
        self._by_fold: dict[str, str] = {}
        for word, words in entries.items():
            self._by_fold.setdefault(_fold(word), words)

    def __contains__(self, word: str) -> bool:
        return _fold(word) in self._folded.words

    def find(self, text: str, at: int, ended: bool) -> tuple[int, str] | None:
        """Length and words to say at `at`: 0 for nothing; None if more text is needed."""
        exact = self._exact.longest(text, at, ended)
        window = text[at : at + self._longest + 2]  # and no further: that would cost a square
        folded = self._folded.longest(_fold(window), 0, ended)
        if exact is None or folded is None:
            return None
        if exact and exact >= folded:
            return exact, self._entries[text[at : at + exact]]
        return (folded, self._by_fold[_fold(text[at : at + folded])]) if folded else (0, "")


def lexicon_for(entries: Mapping[str, str]) -> Lexicon | None:
    """The lexicon of these entries, None for none. The turns of a session share one: 500 words take
    milliseconds to prepare."""
    return _prepared(tuple(entries.items())) if entries else None


@lru_cache(maxsize=256)
def _prepared(entries: tuple[tuple[str, str], ...]) -> Lexicon:
    return Lexicon(dict(entries))


def _fold(text: str) -> str:
    """Lower case, character by character, so that places stay the same."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(char if len(char.lower()) > 1 else char.lower() for char in text)
