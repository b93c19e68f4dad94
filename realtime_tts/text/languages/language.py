"""What a language says for numbers: the words, signs and customs that `reading.py` works with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class Noun:
    """What is counted. `gender` is m, f or n where the number word depends on it."""

    one: str
    many: str
    gender: str = "m"


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency. `minor` is its hundredth; None: there is none in use."""

    major: Noun
    minor: Noun | None = None


YEARS = range(1100, 2100)
"""Numbers of four digits that are read as years where nothing says otherwise."""


class Kind(Enum):
    """What an abbreviation is; it decides what becomes of its full stop."""

    TITLE = auto()  # before a name; the full stop goes with it
    PHRASE = auto()  # inside a sentence; the full stop goes with it
    LAST = auto()  # may end a sentence; its full stop stays if a sentence ends there
    NUMBER = auto()  # only before a number: No. 5
    PLACE = auto()  # Saint before a name, Street behind one


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """What an abbreviation means. `after` is what it means behind a name, for Kind.PLACE."""

    words: str
    kind: Kind
    after: str = ""
    bare: bool = False
    """Whether it is also written without a full stop."""


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """What the normalizer knows of one language.

    Numbers are at least 0 and below 10**15 in all of its functions.

    `cardinal(n)`; `count(n, gender)`: before a noun; `ordinal(n, mark)`: the mark is what was
    written behind the digits, or the word before them in a date; `year(n)`: in `YEARS`; `time(hour,
    minute, second or None, half)`: half is "", "am" or "pm"; `date(day, month, year or None,
    previous)`: `previous` is the word before it.
    """

    name: str
    cardinal: Callable[[int], str]
    count: Callable[[int, str], str]
    ordinal: Callable[[int, str], str]
    year: Callable[[int], str]
    time: Callable[[int, int, int | None, str], str]
    date: Callable[[int, int, int | None, str], str]
    decimal_mark: str
    group_marks: str
    """The characters that may stand between groups of three digits."""
    ordinal_marks: str
    """A regular expression for what makes a numeral an ordinal."""
    point: str
    dot: str
    """What is said between the parts of a version."""
    minus: str
    plus: str
    to: str
    percent: str
    degrees: Noun
    number_sign: str
    and_sign: str
    operators: Mapping[str, str]
    currencies: Mapping[str, Currency]
    units: Mapping[str, Noun]
    scales: Mapping[str, Noun]
    fractions: Mapping[tuple[int, int], str]
    mixed: str
    """What is said between a whole number and a fraction, spaces included."""
    money: str
    """How major and minor units are joined: {major}, {minor} and {coins}, the minor unit."""
    of_scale: Callable[[str], str] = lambda noun: f" {noun}"
    """What follows a scale: " dollars" behind "three million"."""
    singular_below: float = 1.0
    """Amounts that are not whole take the singular below this, and the plural from here on."""
    percent_before: bool = False
    day_first: bool = True
    date_mark: str = "/"
    dotted_ordinals: bool = False
    """A full stop makes an ordinal of a numeral before a month."""
    clock_words: tuple[str, ...] = ()
    """What may follow a time and is part of it: Uhr."""
    halves: Mapping[str, str] = field(default_factory=dict)
    """Maps a.m. and the like, in lower case without spaces, to am or pm."""
    months: Mapping[str, int] = field(default_factory=dict)
    abbreviations: Mapping[str, Abbreviation] = field(default_factory=dict)
    spaced: bool = True
    """Words are separated by spaces."""
    pairs: bool = False
    """Three and four digits behind letters are read in pairs: A380, three eighty."""
    whole_decimals: bool = False
    """Whether up to three decimals without a leading zero are read as one number."""
    kings: frozenset[str] = frozenset()
    """Words before a Roman numeral that is an ordinal."""
    chapters: frozenset[str] = frozenset()
    """Words before a Roman numeral that is a cardinal."""
    the: str = ""
    """The article before such an ordinal."""
    decade: Callable[[int], str] | None = None
    """The decade that begins with a year, or with the last two digits of one: 1990s."""
    dials: frozenset[str] = frozenset()
    """Words before a short telephone number, which is read digit by digit."""
    phones: str = ""
    """A regular expression for national telephone numbers."""
    glued: str = ""
    """A regular expression for other ways to write a time (14h30): groups hour and minute."""

    def digits(self, text: str) -> str:
        """The decimal digits of `text`, one word for each."""
        words = [self.cardinal(int(char)) for char in text if char.isdecimal()]
        return (" " if self.spaced else "").join(words)


Power = tuple[int, str, str]
"""A power, what is said for one of it ("un millón"), and what several are ("millones")."""


def by_powers(
    n: int, powers: Sequence[Power], several: Callable[[int], str], rest: Callable[[int], str]
) -> str:
    """The words for `n`, separated by spaces. `powers`: the largest first.

    `several(k)`: the number before a power that there is k times, k > 1; `rest(k)`: the words for
    what is left below the last power, 0 only if `n` is.
    """
    words = []
    for power, one, many in powers:
        times, n = divmod(n, power)
        if times:
            words.append(one if times == 1 else f"{several(times)} {many}")
    if n or not words:
        words.append(rest(n))
    return " ".join(words)


# Tables in short: one text for many nouns, abbreviations or fractions, separated by "|". An entry
# of the first two is what is written, a space, and what is said: "km kilometre|kg kilogram".

_T = TypeVar("_T")
_FRACTIONS = ((1, 2), (1, 3), (2, 3), (1, 4), (3, 4), (1, 5), (1, 8))


def plural_s(words: str, gender: str = "m") -> Noun:
    """The plural takes its s behind the first word: grados Celsius."""
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


def abbreviations(texts: Mapping[Kind, str], bare: str = "") -> dict[str, Abbreviation]:
    """Read tables of abbreviations, which are written there without their last full stop.

    `bare`: those that people write without one, too.
    """
    without_stop = bare.split()
    return {
        short: Abbreviation(words, kind, bare=short in without_stop)
        for kind, text in texts.items()
        for short, words in _entries(text)
    }


def fractions(text: str) -> dict[tuple[int, int], str]:
    """The words for 1/2, 1/3, 2/3, 1/4, 3/4, 1/5 and 1/8."""
    return dict(zip(_FRACTIONS, text.split("|"), strict=True))


def numbered(names: Sequence[str]) -> dict[str, int]:
    """Number the months by their names."""
    return {name: number for number, name in enumerate(names, 1)}


def _entries(text: str) -> Iterator[tuple[str, str]]:
    for entry in text.split("|"):
        written, _, said = entry.partition(" ")
        yield written, said
