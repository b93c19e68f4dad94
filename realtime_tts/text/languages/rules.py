"""A language's own rules: the words for a number, or a Roman numeral, by the words around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from realtime_tts.text.languages.amounts import NOTHING, Reading
from realtime_tts.text.languages.language import Language, Moment, Rule
from realtime_tts.text.languages.patterns import CLOSERS, MAX_WORD

_SPACES = " \u00a0\u202f"
_BEHIND = re.compile(rf"[{_SPACES}][^\s<]{{1,{MAX_WORD}}}")
_UNSPACED = re.compile(r"[^\n<]")
_WORD = re.compile(rf"[^\s<]{{1,{MAX_WORD}}}")
_NUMERAL_WORD = re.compile(r"[IVX]+(?P<mark>\w*)")
_INCHES = r"(?:[^\"„“]|(?<=\d)\")*+"
UNQUOTED = rf"\A{_INCHES}(?:[\"„“][^\"“”]*[\"“”]{_INCHES})*(?<!\")"
"""Text in which no quotation is open, so that a quotation mark stands for inches; those behind
numbers in it do, too."""
OF_WORDS = r"(?! ?[\d+=*^−²³-]| ?/(?![^\W\d_]{3})|\w)"
"""What follows an x that is no part of a formula; a slash comes before a word: 3x/jour."""
ROMAN = "(?P<roman>(?=[IVX])X{0,3}(?:IX|IV|V?I{0,3}))"
"""A Roman numeral below 40, in patterns."""
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


class RuleReader:
    """Applies the rules of one language. Get one from `rules_for`."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._behind = _BEHIND if language.spaced else _UNSPACED
        marks = language.numeral_marks
        self._marks = frozenset(mark[:n] for mark in marks for n in range(len(mark) + 1))

    def window(
        self, text: str, at: int, extent: int, ended: bool, stop: Callable[[str], bool]
    ) -> int | None:
        """Return the end of the text that rules look at for the number from `at` to `extent`; None
        if more text is needed. The answer never changes when text is added."""
        behind = self._language.behind
        end = extent
        most = extent + MAX_WORD  # a number that never ends would be looked at again and again
        while behind is not None and end < most and behind.fullmatch(text, at, end):
            further = self._further(text, end, ended, stop)
            if further is None or further == end:
                return further
            end = further
        return end

    def numeral(
        self, text: str, at: int, before: str, ended: bool, stop: Callable[[str], bool]
    ) -> Reading | None:
        """Return the words for the Roman numeral at `at`, the beginning of a word; length 0 if
        there is none; None if more text is needed."""
        letters, word = _NUMERAL_WORD.match(text, at), _WORD.match(text, at)
        if letters is None or word is None or letters["mark"] not in self._marks:
            return NOTHING
        rules = [
            rule
            for rule in self._language.numeral_rules
            if rule.cue is None or rule.cue.search(before)
        ]
        if not rules:
            return NOTHING
        is_open = word.end() == len(text) and not ended
        window = None if is_open else self._further(text, word.end(), ended, stop)
        behind = self._language.behind
        if window is not None and behind is not None and behind.fullmatch(text, at, window):
            window = self._further(text, window, ended, stop)
        if window is None:
            return None
        return first_of(rules, text[at:window], before) or NOTHING

    def _further(self, text: str, end: int, ended: bool, stop: Callable[[str], bool]) -> int | None:
        """Return the end of the word behind `end`, or `end` for none; None: more is needed."""
        match = self._behind.match(text, end)
        if match is None:
            rest = text[end : end + 2]
            is_open = not rest or (len(rest) == 1 and rest in _SPACES)
            return None if is_open and not ended else end
        if match.end() == len(text) and self._language.spaced and not ended:
            return None
        return end if stop(match.group()[1:].rstrip(CLOSERS)) else match.end()


def first_of(rules: Iterable[Rule], text: str, before: str) -> Reading | None:
    """Return the reading of the first rule that applies to the beginning of `text`, if any does."""
    for rule in rules:
        match = rule.pattern.match(text)
        if match is None or (rule.cue is not None and rule.cue.search(before) is None):
            continue
        words = rule.words(match)
        if words is not None:
            return Reading(match.end(), words)
    return None


def rule(
    pattern: str,
    words: Callable[[re.Match[str]], str | None],
    cue: str = "",
    unless: str = "",
) -> Rule:
    """Make a rule. The text before the number must end with the pattern `cue`, or must not end with
    `unless`, whichever is given."""
    before = rf"\A(?!(?s:.*)(?:{unless})\Z)" if unless else rf"(?:{cue})\Z" if cue else ""
    return Rule(re.compile(pattern), words, re.compile(before) if before else None)


def ratios(words: Callable[[int], str], colon: str, dash: str) -> tuple[Rule, ...]:
    """Make rules for scores and scales, 3:1 and 1:100, unless they can be a time; and for 3-1,
    unless it ascends.

    `colon`, `dash`: the words for the mark.
    """

    def said(match: re.Match[str]) -> str | None:
        one, two = int(match["one"]), int(match["two"])
        if match["mark"] == "-" and one < two:
            return None
        return f"{words(one)}{colon if match['mark'] == ':' else dash}{words(two)}"

    return (
        rule(r"(?P<one>\d{1,3})(?P<mark>:)(?P<two>\d|[6-9]\d|\d{3,9})(?![\d:])", said),
        rule(r"(?P<one>\d{1,2})(?P<mark>-)(?P<two>\d{1,2})(?![a-zA-Z\d:/=-]|[.,]\d| ?[%‰€])", said),
    )


def linked(
    words: Callable[[int], str], link: str, unit: str = ""
) -> Callable[[re.Match[str]], str]:
    """Return a function that says two numbers with `link` between them, and `unit` behind them
    where a match has one."""

    def said(match: re.Match[str]) -> str:
        behind = unit if match.groupdict().get("unit") else ""
        return f"{words(int(match['one']))}{link}{words(int(match['two']))}{behind}"

    return said


def rated(words: Callable[[int], str], comma: str, of: str) -> Callable[[re.Match[str]], str]:
    """Return a function that says a rating with decimals, which are said one by one: 4,7/5."""

    def said(match: re.Match[str]) -> str:
        return f"{decimal(words, comma, match['one'])} {of} {words(int(match['two']))}"

    return said


def decimal(words: Callable[[int], str], comma: str, number: str) -> str:
    """Say a number whose decimals, if it has any, are said one by one."""
    whole, _, part = number.partition(",")
    return " ".join([words(int(whole)), *([comma] if part else []), *map(words, map(int, part))])


def multiples(words: Callable[[int], str], comma: str, one: str, many: str, to: str) -> Rule:
    """Make a rule for how many times, 3x, 2-3x or 1,5x, unless it is a part of a formula."""

    def said(match: re.Match[str]) -> str:
        if match["n"] == "1" and not match["least"]:
            return one
        least = f"{words(int(match['least']))} {to} " if match["least"] else ""
        return f"{least}{decimal(words, comma, match['n'])} {many}"

    return rule(
        rf"(?:(?P<least>\d{{1,2}})[-–])?(?P<n>\d{{1,3}}(?:,\d{{1,2}})?)x{OF_WORDS}",
        said,
        unless=r"[-+=−*(]\s?",
    )


def inches(
    words: Callable[[int], str], comma: str, noun: str, parts: tuple[str, str, str]
) -> tuple[Rule, ...]:
    """Make rules for two inches or more, and for parts of one: 65", 6,5", 3/4".

    `parts`: the words for half an inch, a quarter and three quarters.
    """
    half = dict(zip(("1/2", "1/4", "3/4"), parts, strict=True))
    return (
        rule(
            r"(?P<n>(?:[2-9]|[1-9]\d{1,2})(?:,\d{1,2})?)[\"”″]",
            lambda match: f"{decimal(words, comma, match['n'])} {noun}",
            UNQUOTED,
        ),
        rule(rf"({'|'.join(half)})[\"”″]", lambda match: half[match[1]], rf"{UNQUOTED}(?<!\d )"),
    )


def vehicles(words: Callable[[int], str]) -> tuple[Rule, ...]:
    """Make rules for tyres and oils, whose letters are no units: 205/55 R16 91V, 5W-30."""
    return (
        rule(r"(?P<one>[1-3]\d5)/(?P<two>\d\d)(?= ?Z?R(?:\d|\Z))", linked(words, " ")),
        rule(
            r"(?P<n>\d{2,3})(?=[H-Y](?!\w))",
            lambda m: words(int(m["n"])),
            r"\dZ?R\d\d |/\d\d Z?R\d\d ",
        ),
        rule(r"(?P<one>\d{1,2})W-?(?P<two>\d\d)(?!\w)", linked(words, " W ")),
    )


def laps(words: Callable[[int], str], comma: str) -> Rule:
    """Make a rule for the time of a lap, which is no time of day: 1:21,046 or 3:31,24 min."""
    return rule(
        r"(?P<one>\d{1,2}):(?P<two>[0-5]\d,\d{1,3})(?!\d)(?: ?min(?!\w))?",
        lambda match: f"{words(int(match['one']))} {decimal(words, comma, match['two'])}",
    )


def month_years(names: Iterable[str], of: str, year: Callable[[int], str]) -> Rule:
    """Make a rule for a month of a year, 05/2026, unless it is the number of something.

    `of`: what is said between the month and the year.
    """
    months = list(names)
    return rule(
        r"(?P<month>0[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d)(?![\w/])",
        lambda match: f"{months[int(match['month']) - 1]}{of}{year(int(match['year']))}",
        unless=r"(?:n[°º]|[Nn]o?[rº]?\.[º°]?|[Nn]úm\.|[Nn]ummer|[Nn]úmero|[Nn]uméro|Az\.|Heft)\s?|/",
    )


def spelled(words: Callable[[int], str]) -> Callable[[re.Match[str]], str]:
    """Return a function that says digits one by one, and a comma between groups of them."""

    def said(match: re.Match[str]) -> str:
        groups = re.findall(r"\d+", match.group())
        return ", ".join(" ".join(words(int(digit)) for digit in group) for group in groups)

    return said


def long_codes(words: Callable[[int], str]) -> tuple[Rule, ...]:
    """Make rules for accounts, cards, books, cases and doses: 3704 0044 0532, 978-3-16-148410-0,
    2024-00817, #INC-4521, 1-0-1."""
    pattern = (
        r"(?:\d{4}(?: \d{4}){2,}(?: \d{1,3})?|\d{1,6}(?:-\d{1,7}){3,}|\d(?:-\d){2}"
        r"|\d{2,7}-0\d{2,}|\d{1,4}-\d{6,})(?![\w-])"
    )
    said = spelled(words)
    card = rule(r"\d{4}(?!\w)", said, "•{2,} ?")  # the end of its number: •••• 4242
    return (rule(pattern, said), card, rule(r"\d{3,}(?![\w.,/-]*\d)", said, r"#[A-Z]{1,8}-"))


def seats(words: Callable[[int], str], cue: str) -> Rule:
    """Make a rule for seats and gates, whose letter is no unit: seat 12A.

    `cue`: a pattern for the words before it.
    """
    return rule(r"(?P<n>\d{1,3})(?=[A-L](?!\w))", lambda m: words(int(m["n"])), rf"\b(?i:{cue})\s")


def parts_of(words: Callable[[int], str], of: str, cue: str, behind: str) -> tuple[Rule, ...]:
    """Make rules for what is a part, or a rating, and no fraction: page 3/12, a mark of 8/10.

    `cue`: a pattern for the text before it; `behind`: one for a plural that follows it.
    """

    said = linked(words, f" {of} ")
    number = r"(?P<one>\d{1,3})/(?P<two>\d{1,3})"
    return (
        rule(r"50/50(?![\d/])", lambda match: f"{words(50)} {words(50)}"),
        rule(rf"{number}(?![\d/]|,\d)", said, cue),
        rule(rf"{number}(?= (?:{behind})(?!\w))", said),
    )


def times(words: Callable[[int], str], comma: str, link: str) -> Rule:
    """Make a rule for products and sizes, 4 x 100 and 4,5 x 3,2."""
    return rule(
        r"(?P<n>(?!0x)\d+(?:,\d{1,2})?) ?[x×](?= ?\d)",
        lambda match: f"{decimal(words, comma, match['n'])} {link}",
    )


def dated(say: Moment) -> Callable[[re.Match[str]], str | None]:
    """Return a function that says the day, the month and, where a match has one, the year; None
    for numbers that are no date."""

    def said(match: re.Match[str]) -> str | None:
        day, month = int(match["day"]), int(match["month"])
        if not (1 <= day <= 31 and 1 <= month <= 12):
            return None
        year = match.groupdict().get("year")
        return say(day, month, int(year) if year else None, "")

    return said


def dates(say: Moment, marks: str) -> Rule:
    """Make a rule for dates with other marks between their numbers, the day first: 5.3.2024."""
    pattern = rf"(?P<day>\d{{1,2}})(?P<mark>[{marks}])(?P<month>\d{{1,2}})(?P=mark)"
    return rule(rf"{pattern}(?P<year>\d{{4}})(?![\w./-]\w)", dated(say))


class Genders:
    """Finds the gender of a noun in a table of words and endings (-tion); the longest match wins.

    `table` maps a gender to its entries, separated by spaces; "" has words that are no nouns.
    """

    def __init__(self, table: Mapping[str, str]) -> None:
        self._endings = {
            entry[1:] if entry[0] == "-" else f"={entry}": gender
            for gender, entries in table.items()
            for entry in entries.split()
        }
        self._longest = max(map(len, self._endings))

    def of(self, word: str, default: str = "") -> str:
        """Return the gender of a noun; `default` if the table does not have it."""
        word = "=" + word.lower()
        for at in range(max(0, len(word) - self._longest), len(word)):
            if word[at:] in self._endings:
                return self._endings[word[at:]]
        return default


def roman_value(numeral: str) -> int:
    """Return the value of a Roman numeral."""
    values = [_VALUES[char] for char in numeral]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < after else value for value, after in pairs)


rules_for = cache(RuleReader)
"""Return the `RuleReader` of a language, which all sessions share."""
