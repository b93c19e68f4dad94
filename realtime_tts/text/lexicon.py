"""The words of a lexicon, which are said in another way, found in text that arrives in pieces."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import msgspec

from realtime_tts.text.characters import is_hangul, is_word_character

Found = tuple[int, str] | None
"""Length of a word and what to say for it; length 0 for no word; None if more text is needed."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A word, or several separated by spaces, and what to say for it."""

    word: str
    say: str
    case_sensitive: bool = False
    """Whether the word matches only text in the same case."""


class Words(Protocol):
    """A set of words that can be found in a text."""

    @property
    def growth(self) -> int:
        """The most characters that are said for one character of a word; at least 1."""

    def __contains__(self, word: str) -> bool:
        """Return whether the word is in the set."""

    def find(self, text: str, at: int, ended: bool) -> Found:
        """Return the longest word of the set that begins at `at`. Not `ended`: more may follow."""


class WordTable:
    """Sorted words, found by bisection. Case matters. Only whole words match where words are
    separated by spaces: `cat` is not found in `cats`. Korean particles may follow a word of other
    letters: `SQL은`."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = sorted(dict.fromkeys(words))
        self._shorter = _shorter_words(self._words)
        self.most = max(map(len, self._words), default=0) + 1
        """Characters of a text that a look-up needs."""

    def longest(self, text: str, at: int, ended: bool, below: int | None = None) -> int | None:
        """Return the length of the longest word at `at`; 0 for none; None if more text could make
        it longer. `below`: only shorter words count."""
        text = text[at : at + self.most]
        words, place = self._words, bisect_right(self._words, text)
        if not ended and place < len(words) and words[place].startswith(text):
            return None
        # All words that the text begins with are among these: each is the beginning of the next.
        place -= 1
        while place >= 0:
            word, length = words[place], len(words[place])
            if text.startswith(word) and (below is None or length < below):
                bounded = _ends_word(text, length, ended)
                if bounded is not False:
                    return length if bounded else None
            place = self._shorter[place]
        return 0


class WordList:
    """A list of entries. One in the text's own case takes precedence over one in another; of two
    equal ones the first counts. A typographic apostrophe matches a straight one."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: dict[str, list[Entry]] = {}
        for entry in entries:
            self._entries.setdefault(folded(entry.word), []).append(entry)
        self._table = WordTable(self._entries)
        every = (entry for same in self._entries.values() for entry in same)
        self._growth = max((-(-len(each.say) // len(each.word)) for each in every), default=1)

    @property
    def growth(self) -> int:
        """See `Words`."""
        return self._growth

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __contains__(self, word: str) -> bool:
        return _spelled(self._entries.get(_fold(word), ()), word) is not None

    def find(self, text: str, at: int, ended: bool) -> Found:
        """See `Words`."""
        window = text[at : at + self._table.most]
        plain = _fold(window)
        length = self._table.longest(plain, 0, ended)
        while length:
            entry = _spelled(self._entries[plain[:length]], window[:length])
            if entry is not None:
                return length, entry.say
            length = self._table.longest(plain, 0, ended, below=length)
        return None if length is None else (0, "")


class Lexicon:
    """Several lists as one: the longest word counts; of equally long ones, the first list's."""

    def __init__(self, *lists: Words | Mapping[str, str]) -> None:
        self._lists = [
            WordList(Entry(*each) for each in one.items()) if isinstance(one, Mapping) else one
            for one in lists
        ]

    @property
    def growth(self) -> int:
        """See `Words`."""
        return max((words.growth for words in self._lists), default=1)

    def __contains__(self, word: str) -> bool:
        return any(word in words for words in self._lists)

    def find(self, text: str, at: int, ended: bool) -> Found:
        """See `Words`."""
        best: tuple[int, str] = 0, ""
        for words in self._lists:
            found = words.find(text, at, ended)
            if found is None:
                return None
            if found[0] > best[0]:
                best = found
        return best


def lexicon_for(entries: Mapping[str, str], named: Iterable[Words] = ()) -> Lexicon | None:
    """Return the lexicon of these entries, before the `named` ones; None if there are none at all.
    The turns of a session share the table of its entries: 500 words take a millisecond to
    prepare."""
    lists = [*([_prepared(tuple(entries.items()))] if entries else ()), *named]
    return Lexicon(*lists) if lists else None


@lru_cache(maxsize=256)
def _prepared(entries: tuple[tuple[str, str], ...]) -> WordList:
    return WordList(Entry(*each) for each in entries)


def _shorter_words(words: list[str]) -> list[int]:
    """Return for each of these sorted words the index of the longest other one that it begins with;
    -1 for none."""
    shorter: list[int] = []
    begun: list[int] = []  # indices: each word begins the next, the last begins `word`
    for place, word in enumerate(words):
        while begun and not word.startswith(words[begun[-1]]):
            begun.pop()
        shorter.append(begun[-1] if begun else -1)
        begun.append(place)
    return shorter


def _ends_word(text: str, end: int, ended: bool) -> bool | None:
    if not is_word_character(text[end - 1]):
        return True
    if end == len(text):
        return True if ended else None
    if is_hangul(text[end]) and not is_hangul(text[end - 1]):
        return True  # a particle: SQL은
    return not (is_word_character(text[end]) or "\u0300" <= text[end] <= "\u036f")


def _spelled(entries: Sequence[Entry], word: str) -> Entry | None:
    """Return the entry, of those that differ only in case, for a word written like this."""
    plain = word.replace("’", "'")
    same = (entry for entry in entries if _composed(entry.word) == plain)
    return next(same, None) or next((each for each in entries if not each.case_sensitive), None)


def folded(word: str) -> str:
    """Return a word without its case, the key by which lists are sorted."""
    return _fold(_composed(word))


def _composed(word: str) -> str:
    """Return the word as text reaches the lexicon: NFC, and with one kind of apostrophe."""
    return unicodedata.normalize("NFC", word).replace("’", "'")


def _fold(text: str) -> str:
    """Return lower case, character by character, so that offsets stay the same; one apostrophe."""
    text = text.replace("’", "'")
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(char if len(char.lower()) > 1 else char.lower() for char in text)
