"""Reads a language's abbreviations, short names and Roman numerals by the words around them, in
text that arrives in pieces."""

from __future__ import annotations

import re
from functools import cache

from realtime_tts.text.languages.amounts import NOTHING, Reading
from realtime_tts.text.languages.language import Abbreviation, Kind, Language
from realtime_tts.text.languages.reading import reader_for
from realtime_tts.text.languages.rules import roman_value
from realtime_tts.text.lexicon import WordTable

_ROMAN = re.compile(r"(?:XC|XL|LX{0,3}|X{0,3})(?:IX|IV|V?I{0,3})(?!\w)")
_ROMAN_LETTERS = frozenset("IVXLC")
_BARE = frozenset((Kind.SYMBOL, Kind.ZIP))
_ZIP = re.compile(r",? \d{5}(?!\d)")
_OPEN_ZIP = re.compile(r",?(?: \d{0,5})?")
_DATE_BEHIND = re.compile(r"[,:]? (?P<word>\w+)")
_HOURS_BEHIND = re.compile(
    r"(?: ?:)? \d{1,2}(?::[0-5]\d|[-–]\d{1,2} ?(?:h|Uhr)(?!\w))| ?: \d{1,2}[-–]\d"
    r"|(?<!So)(?: ?:)? \d{1,2} ?(?:h|Uhr)"
)
"""Hours behind the short name of a day: Sa 10-14 Uhr, Sam : 9h-13h; So is a word, too."""
_OPEN_HOURS_BEHIND = re.compile(
    r"(?: ?:)?(?: (?:\d{1,2}(?:[-–]\d{0,2})? ?(?:h|Uh?r?)?|\d{1,2}:[0-5]?)?)?\Z"
)
_OPEN_LIST_BEHIND = re.compile(
    r"(?:,(?: [^\W\d_]{0,3})?|/[^\W\d_]{0,3}| (?:u|un|und|e|et|y)?|(?: und| et| y) [^\W\d_]{0,3})\Z"
)
_OPEN_DATE_BEHIND = re.compile(r"[,:]?(?: \w*)?\Z")
_YEAR = re.compile(r" ?\d{3,4}(?![\w%]|[.,]\d)")
_OPEN_YEAR = re.compile(r" ?(?:\d{0,4}|\d{3,4}[.,])\Z")
_PREVIOUS_WORD = re.compile(r"(\S+)\s?\Z")
_COMPOUND = re.compile(r"(?<![^\W\d_])[A-ZÄÖÜ][^\W\d_]{2,}\Z")
_HEAD = re.compile(r"[^\W\d_]*")


class AbbreviationReader:
    """Reads the abbreviations of one language. Get one from `abbreviations_for`."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._table = WordTable(
            [f"{s}." for s, entry in language.abbreviations.items() if entry.kind not in _BARE]
            + [short for short, entry in language.abbreviations.items() if entry.bare]
            + [short for short, entry in language.abbreviations.items() if entry.kind in _BARE]
        )

        heads = [_HEAD.findall(short)[0] for short in language.abbreviations]
        if not language.day_first:
            heads += language.months
        heads += language.spans
        heads += reader_for(language).money_heads
        self._heads = frozenset(heads)
        self.starts = frozenset(head[:n] for head in heads for n in range(1, len(head)))
        """All proper prefixes of the words that this reader may read."""
        ending = language.ending
        self.heads_of_ending = tuple(ending[:n] for n in range(1, len(ending) + 1))
        """What a word ends with that `ends_compound` must look at."""
        self._numerals = bool(language.kings)
        self._spans = WordTable(language.spans)
        day = "|".join(sorted(map(re.escape, language.spans), key=len, reverse=True)) or "(?!)"
        link = r"(?:(?:,| und| et| y) |/)"
        self._listed = re.compile(rf"{link}(?:{day})(?!\w)")
        self._lists = re.compile(rf"(?<!\w)(?:{day}){link}\Z")
        """Another short name of a day, behind one and before one: Mo, Di und Do."""
        self._span_letters = frozenset(name[0] for name in language.spans)

    def may_read(self, word: str, is_open: bool) -> bool:
        """Return whether an abbreviation, a month or a numeral can begin with these letters.
        `is_open`: the text ends behind them, so more letters may follow. Cheap, because it is
        called for every word."""
        if word in self._heads or (is_open and word in self.starts):
            return True
        return self._numerals and word[0] in _ROMAN_LETTERS and _ROMAN_LETTERS.issuperset(word)

    def ends_compound(self, word: str, before: str, is_open: bool) -> bool | None:
        """Return whether `word` is the abbreviation at the end of a compound, whose letters before
        it end `before`: Bahnhofstr. None if more text is needed."""
        if is_open and _COMPOUND.search(before + word):
            return None
        return word == self._language.ending and _COMPOUND.search(before) is not None

    def read(self, text: str, at: int, ended: bool, before: str) -> Reading | None:
        """Return the reading of what is at `at`, the beginning of a word; its length is 0 if there
        is no abbreviation. None if more text is needed. `before` is the text before it, back to
        some tens of characters."""
        lang, previous = self._language, word_before(before)
        if text[at] in _ROMAN_LETTERS and (previous in lang.kings or previous in lang.chapters):
            return self._roman(text, at, ended, previous)
        if lang.numerals and text[at] in _ROMAN_LETTERS and _is_title(previous):
            numeral = self._numeral(text, at, ended)
            if numeral is None or numeral.length:
                return numeral
        if text[at] in self._span_letters:
            span = self._span(text, at, ended, before)
            if span is None or span.length:
                return span
        length = self._table.longest(text, at, ended)
        if not length:
            return None if length is None else NOTHING
        return self._abbreviation(text, at, at + length, ended, before, previous)

    def _abbreviation(
        self, text: str, at: int, end: int, ended: bool, before: str, previous: str
    ) -> Reading | None:
        short, known = text[at:end], self._language.abbreviations
        entry = known.get(short) or known[short.removesuffix(".")]
        length, words, kind = len(short), *self._words(short, entry, before)
        if end == len(text) and not ended:
            return None
        if kind is Kind.SYMBOL:
            return Reading(length, words)
        if kind is Kind.ZIP:
            if _OPEN_ZIP.fullmatch(text, end) and not ended:
                return None
            listed = not previous or previous.endswith(",")
            return Reading(length, words) if listed and _ZIP.match(text, end) else NOTHING
        if kind is Kind.YEAR:
            if _OPEN_YEAR.match(text, end) and not ended:
                return None
            inside = before.rstrip(" ,;")[-1:] not in ("", "\n") and not previous[:1].isdecimal()
            return Reading(length, words) if inside and _YEAR.match(text, end) else NOTHING
        spaced = text[end : end + 1] == " "
        if spaced and end + 1 == len(text) and not ended:
            return None
        following = text[end + spaced : end + spaced + 1]
        if kind is Kind.NUMBER:
            if following.isdecimal() or not entry.after:
                return Reading(length, words) if following.isdecimal() else NOTHING
            words = entry.after
        if kind is Kind.COMPASS:
            named = following.isupper() or following.isdecimal()
            return Reading(length, words) if named and previous.isdecimal() else NOTHING
        if kind is Kind.NAMES:
            names = previous[:1].isupper() and spaced and following.isupper()
            return Reading(length, words) if names else NOTHING
        if kind is Kind.PLACE:
            return self._place(short, entry, following, spaced, before, previous)
        if kind in (Kind.LAST, Kind.NUMBER) and (not following.strip() or following.isupper()):
            if text[end - 1] != ".":
                return Reading(length, words)
            ends = sentence_ends(text, end, ended, self._language.after_time)
            if ends is None:
                return None
            return Reading(length, words + ("." if ends else ""))
        if kind is Kind.TITLE and not (spaced and (following.isupper() or following == "")):
            return NOTHING
        return Reading(length, words)

    def _words(self, short: str, entry: Abbreviation, before: str) -> tuple[str, Kind]:
        """Return the words and the kind. With other words it may end a sentence: am So."""
        cue, other = self._language.behind_text.get(short, (None, ""))
        if cue is not None and cue.search(before):
            return other, Kind.LAST
        return entry.words, entry.kind

    def _place(
        self,
        short: str,
        entry: Abbreviation,
        following: str,
        spaced: bool,
        before: str,
        previous: str,
    ) -> Reading:
        """Read an abbreviation that has two meanings: Saint Louis, Main Street."""
        named = (previous[:1].isupper() or previous[:1].isdecimal()) and previous[-1:].isalnum()
        named = named and previous.lower() not in self._language.no_names
        street = self._language.before_street
        behind_name = named and street is not None and street.search(before)
        if following.isupper() and spaced and not behind_name:
            return Reading(len(short), entry.words)
        ends = not following.strip() or (following.isupper() and named)
        stop = "." if ends and short[-1] == "." else ""
        return Reading(len(short), entry.after + stop if named else entry.words)

    def _span(self, text: str, at: int, ended: bool, before: str) -> Reading | None:
        """Read the short name of a day or month in a range (Mon-Fri), in a list (Mo, Di, Do)
        or before a date."""
        spans = self._language.spans
        length = self._spans.longest(text, at, ended)
        if not length:
            return None if length is None else NOTHING
        end, name = at + length, spans[text[at : at + length]]
        if text[end : end + 1] in ("-", "–"):
            until = self._spans.longest(text, end + 1, ended) if end + 1 < len(text) else None
            if until is None and not ended:
                return None
            if not until:
                return NOTHING
            second = spans[text[end + 1 : end + 1 + until]]
            return Reading(length + 1 + until, f"{name} {self._language.to} {second}")
        if not self._language.behind_day:  # its name may be a word: So 5 Minuten, jeu 5
            if not ended and (
                _OPEN_HOURS_BEHIND.match(text, end) or _OPEN_LIST_BEHIND.match(text, end)
            ):
                return None
            is_day = self._lists.search(before) or self._listed.match(text, end)
            return Reading(length if is_day or _HOURS_BEHIND.match(text, end) else 0, name)
        if not ended and _OPEN_DATE_BEHIND.match(text, end):
            return None
        behind = _DATE_BEHIND.match(text, end)
        if behind is None:
            return NOTHING
        word = behind["word"]
        dated = (
            word[:1].isdecimal()
            or word in self._language.months
            or word in self._language.behind_day
        )
        return Reading(length, name) if dated else NOTHING

    def _is_pronoun(self, text: str, end: int, ended: bool) -> bool | None:
        """Return whether the I that ends at `end` is a pronoun: Part I liked. None: more is
        needed."""
        match = _HEAD.match(text, end + 1)
        word = match.group() if match else ""
        if end + 1 + len(word) >= len(text) and not ended:
            return None
        return word.islower() and word not in self._language.behind_one

    def _numeral(self, text: str, at: int, ended: bool) -> Reading | None:
        """Read a numeral behind any capitalised word: Halo III."""
        assert self._language.numerals
        numeral = _numeral_at(self._language.numerals, text, at, ended)
        if not numeral:
            return None if numeral is None else NOTHING
        return Reading(len(numeral), self._language.cardinal(roman_value(numeral)))

    def _roman(self, text: str, at: int, ended: bool, previous: str) -> Reading | None:
        """Read a numeral behind the name of a king or the word for a part: Louis XIV, Part II."""
        numeral = _numeral_at(_ROMAN, text, at, ended)
        if numeral is None:
            return None
        if numeral in ("", "L", "C"):
            return NOTHING
        lang, value, end = self._language, roman_value(numeral), at + len(numeral)
        if value == 1 and previous not in lang.before_one:
            return NOTHING
        if value == 1 and text[end : end + 1] in ("", " "):
            pronoun = self._is_pronoun(text, end, ended)
            if pronoun is None or pronoun:
                return None if pronoun is None else NOTHING
        if previous in lang.kings:
            return Reading(end - at, lang.the + lang.ordinal(value, ""))
        return Reading(end - at, lang.cardinal(value))


def _numeral_at(pattern: re.Pattern[str], text: str, at: int, ended: bool) -> str | None:
    """Return the numeral at `at`, if the pattern takes all its letters, else ""; None if more text
    is needed."""
    end = at
    while end < len(text) and text[end] in _ROMAN_LETTERS:
        end += 1
    if end == len(text) and not ended:
        return None
    match = pattern.match(text, at)
    return match.group() if match is not None and match.end() == end else ""


def word_before(before: str) -> str:
    """Return the word that a text ends with, perhaps before a space."""
    match = _PREVIOUS_WORD.search(before)
    return match.group(1) if match else ""


def _is_title(word: str) -> bool:
    return len(word) > 2 and word[0].isupper() and word[1:].isalpha() and word[1:].islower()


def sentence_ends(
    text: str, at: int, ended: bool, inside: frozenset[str] = frozenset()
) -> bool | None:
    """Return whether a full stop before `at` ends a sentence; None if more text is needed.

    `inside`: capitalised words that may follow the full stop within the sentence.
    """
    window = text[at : at + 2]
    if len(window) < 2:
        if window[:1] == "\n":
            return True
        if window and window != " ":
            return False
        return True if ended else None
    if window[0] != " " or not (window[1].isupper() or window[1] in "¿¡"):
        return window[0] == "\n"
    if not inside:
        return True
    match = _HEAD.match(text, at + 1)
    word = match.group() if match else ""
    if at + 1 + len(word) == len(text) and not ended:
        return None if any(name.startswith(word) for name in inside) else True
    return word not in inside


abbreviations_for = cache(AbbreviationReader)
"""Return the `AbbreviationReader` of a language, which all sessions share."""
