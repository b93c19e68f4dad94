"""Words that are to be said in another way: a lexicon's, and the abbreviations and Roman numerals
of a language, by the words around them. Found in text that arrives in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from realtime_tts.text.characters import is_word_character
from realtime_tts.text.languages.language import Kind, Language
from realtime_tts.text.languages.reading import Reading
from realtime_tts.text.languages.rules import roman_value


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


_ROMAN = re.compile(r"X{0,3}(?:IX|IV|V?I{0,3})(?!\w)")
_ROMAN_LETTERS = frozenset("IVX")
_NO_NAMES = frozenset("and at but by for from in near of on or the to with".split())
_HEAD = re.compile(r"[^\W\d_]*")


class AbbreviationReader:
    """The abbreviations of one language. Get it from `abbreviations_for`."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._table = WordTable(
            [f"{short}." for short in language.abbreviations]
            + [short for short, entry in language.abbreviations.items() if entry.bare]
        )

        heads = [_HEAD.findall(short)[0] for short in language.abbreviations]
        if not language.day_first:
            heads += language.months
        self._heads = frozenset(heads)
        self._starts = frozenset(head[:n] for head in heads for n in range(1, len(head)))
        self._numerals = bool(language.kings)

    def may_read(self, word: str, is_open: bool) -> bool:
        """Whether an abbreviation, a month or a numeral can begin with these letters, to which more
        may come if the text ends there (`is_open`). Cheap: asked of every word."""
        if word in self._heads or (is_open and word in self._starts):
            return True
        return self._numerals and word[0] in _ROMAN_LETTERS and _ROMAN_LETTERS.issuperset(word)

    def read(self, text: str, at: int, ended: bool, previous: str) -> Reading | None:
        """What stands at `at`, the beginning of a word; length 0: no abbreviation; None: more text
        is needed. `previous` is the word before it."""
        if text[at] in _ROMAN_LETTERS and (
            previous in self._language.kings or previous in self._language.chapters
        ):
            return self._roman(text, at, ended, previous)
        length = self._table.longest(text, at, ended)
        if not length:
            return None if length is None else Reading(0, "")
        short = text[at : at + length].removesuffix(".")
        end = at + length
        entry = self._language.abbreviations[short]
        if end == len(text) and not ended:
            return None
        spaced = text[end : end + 1] == " "
        if spaced and end + 1 == len(text) and not ended:
            return None
        following = text[end + spaced : end + spaced + 1]
        if entry.kind is Kind.NUMBER:
            return Reading(length, entry.words) if following.isdecimal() else Reading(0, "")
        if entry.kind is Kind.PLACE:
            named = previous[:1].isupper() and previous[-1].isalnum()
            named = named and previous.lower() not in _NO_NAMES
            if following.isupper() and spaced and not named:
                return Reading(length, entry.words)
            stop = "." if not following.strip() or (following.isupper() and named) else ""
            words = entry.after if named else entry.words
            return Reading(length, words + (stop if named else ""))
        if entry.kind is Kind.LAST and (not following.strip() or following.isupper()):
            return Reading(length, entry.words + ".")
        if entry.kind is Kind.TITLE and not (spaced and (following.isupper() or following == "")):
            return Reading(0, "")
        return Reading(length, entry.words)

    def _roman(self, text: str, at: int, ended: bool, previous: str) -> Reading | None:
        end = at
        while end < len(text) and text[end] in _ROMAN_LETTERS:
            end += 1
        if end == len(text) and not ended:
            return None
        match = _ROMAN.match(text, at)
        if match is None or match.end() != end:
            return Reading(0, "")
        value = roman_value(match.group())
        if value == 1 and previous not in ("War", "Chapter", "Part", "Act", "Phase", "Type"):
            return Reading(0, "")
        lang = self._language
        if previous in lang.kings:
            return Reading(end - at, lang.the + lang.ordinal(value, ""))
        return Reading(end - at, lang.cardinal(value))


def sentence_ends(text: str, at: int, ended: bool) -> bool | None:
    """Whether a full stop before `at` ends a sentence; None if more text is needed."""
    window = text[at : at + 2]
    if len(window) < 2:
        if window[:1] == "\n":
            return True
        if window and window != " ":
            return False
        return True if ended else None
    return window[0] == "\n" or (window[0] == " " and window[1].isupper())


abbreviations_for = cache(AbbreviationReader)
"""Gives the abbreviations of a language; all sessions share them."""
