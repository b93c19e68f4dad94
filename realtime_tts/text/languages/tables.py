"""Reads a language's tables, which are written in short, and composes numbers of several words.

One text has many nouns or abbreviations, separated by "|". An entry is what is written, a space,
and what is said: "km kilometre|kg kilogram".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from realtime_tts.text.languages.language import Abbreviation, Kind, Noun

_T = TypeVar("_T")

Power = tuple[int, str, str]
"""A power, the words for one of it ("un millón"), and the word behind several ("millones")."""


def by_powers(
    n: int, powers: Sequence[Power], several: Callable[[int], str], rest: Callable[[int], str]
) -> str:
    """Return the words for `n`, separated by spaces. `powers`: the largest first.

    `several(k)`: the words for k of a power, k > 1; `rest(k)`: the words for what is left below the
    last power, 0 only if `n` is.
    """
    words = []
    for power, one, many in powers:
        times, n = divmod(n, power)
        if times:
            words.append(one if times == 1 else f"{several(times)} {many}")
    if n or not words:
        words.append(rest(n))
    return " ".join(words)


LINE_START = re.compile(r"(?:\A|\n)\Z")
"""Text before an item of a list or a cell of a table."""
SPACES = " \u00a0\u202f"
"""Spaces inside numbers and abbreviations; a line does not break at two of them."""


def plural_s(words: str, gender: str = "m") -> Noun:
    """Return a noun whose plural takes its s behind the first word: grados Celsius."""
    first, space, rest = words.partition(" ")
    return Noun(words, f"{first}s{space}{rest}", gender)


def invariable(words: str, gender: str = "m") -> Noun:
    return Noun(words, words, gender)


def nouns(noun: Callable[[str, str], Noun], text: str, gender: str = "m") -> dict[str, Noun]:
    """Read a table of nouns, each of which `noun(words, gender)` makes."""
    return {short: noun(words, gender) for short, words in _entries(text)}


def by_name(table: Mapping[str, _T]) -> dict[str, _T]:
    """Make an entry for each of the names, separated by spaces, that a key of `table` consists
    of."""
    return {name: value for names, value in table.items() for name in names.split()}


def abbreviations(
    texts: Mapping[Kind, str], bare: str = "", spaced: bool = False
) -> dict[str, Abbreviation]:
    """Read tables of abbreviations, which are written there without their last full stop.

    `bare`: those that are also written without one. `spaced`: a space may follow the full stops
    inside them. Those of `Kind.PHRASE` may also begin a sentence, with a capital.
    """
    without_stop = bare.split()
    return {
        form: Abbreviation(words, kind, bare=short in without_stop)
        for kind, text in texts.items()
        for short, words in (_begun(text) if kind is Kind.PHRASE else _entries(text))
        for form in (
            (short, *(short.replace(".", f".{s}") for s in SPACES)) if spaced else (short,)
        )
    }


def _begun(text: str) -> Iterator[tuple[str, str]]:
    """Read a table, and each of its entries as it begins a sentence, unless that leaves letters
    that may be initials: I.A."""
    for short, words in _entries(text):
        yield short, words
        if (capital := short[0].upper() + short[1:]) not in (short, short.upper()):
            yield capital, words[0].upper() + words[1:]


def ranges(days: Mapping[str, str], to: str) -> str:
    """Return a table of the ranges of days whose short names have a full stop: Mon.-Fri., and
    with the word for "to" between them."""
    return "|".join(
        f"{one}.{link}{two}. {first} {to} {second}"
        for short, name in days.items()
        for one, first in dict.fromkeys(((short, name), (short.capitalize(), name.capitalize())))
        for two, second in days.items()
        for link in ("-", "–", "_-_", "_–_", f"_{to}_")
        if short != two
    )


def spans(days: Mapping[str, str]) -> dict[str, str]:
    """Return short names of days with what they stand for, also those with a capital."""
    return {**days, **{one.capitalize(): name.capitalize() for one, name in days.items()}}


def numbered(names: Sequence[str]) -> dict[str, int]:
    """Map the names of the months to their numbers."""
    return {name: number for number, name in enumerate(names, 1)}


def entries(text: str) -> dict[str, str]:
    """Read a table of what is written and what is said."""
    return dict(_entries(text))


def _entries(text: str) -> Iterator[tuple[str, str]]:
    for entry in text.split("|"):
        written, _, said = entry.partition(" ")
        yield written.replace("_", " "), said
