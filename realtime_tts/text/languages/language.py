"""The words, signs and customs of a language for numbers, which `reading.py` works with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun that is counted. `gender` is m, f or n where the number word depends on it."""

    one: str
    many: str
    gender: str = "m"


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency. `minor` is its hundredth, None if none is in use."""

    major: Noun
    minor: Noun | None = None


Moment = Callable[[int, int, int | None, str], str]
"""Says a day, a month and perhaps a year, or an hour, a minute and perhaps a second, behind a text
that stands before them."""
YEARS = range(1100, 2100)
"""Numbers of four digits that are read as years where nothing says otherwise."""


class Rule(NamedTuple):
    """A rule for numbers of one kind. `words` returns None if the rule does not apply after all."""

    pattern: re.Pattern[str]
    words: Callable[[re.Match[str]], str | None]
    cue: re.Pattern[str] | None = None
    """What must be found in the text before the number; None: nothing."""


class Kind(Enum):
    """The kind of an abbreviation, which decides what becomes of its full stop."""

    TITLE = auto()  # before a name; its full stop is dropped
    NAMES = auto()  # between two names; its full stop is dropped: Roe v. Wade
    PHRASE = auto()  # inside a sentence; its full stop is dropped
    LAST = auto()  # may end a sentence; its full stop stays if a sentence ends there
    NUMBER = auto()  # before a number, No. 5; elsewhere it is Kind.LAST with other words, if any
    PLACE = auto()  # Saint before a name, Street behind one
    SYMBOL = auto()  # as it is written, without a full stop of its own: MB/s, w/
    ZIP = auto()  # only before a number of five digits, without a full stop
    COMPASS = auto()  # before a name, behind a house number
    YEAR = auto()  # before a number of three or four digits, unless it counts a list: a. b. c.


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """An abbreviation and its words. `after`: the words behind a name, for Kind.PLACE, or where no
    number follows, for Kind.NUMBER."""

    words: str
    kind: Kind
    after: str = ""
    bare: bool = False
    """Whether the abbreviation is also written without a full stop."""


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
    time: Moment
    date: Moment
    decimal_mark: str
    group_marks: str
    """The characters that may stand between groups of three digits."""
    ordinal_marks: str
    """A regular expression for the marks that make a numeral an ordinal: st, nd."""
    point: str
    dot: str
    """The word between the parts of a version."""
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
    """The words between a whole number and a fraction, spaces included."""
    money: str
    """A format for major and minor units together: {major}, {minor} and {coins}, the minor unit."""
    of_scale: Callable[[str], str] = lambda noun: f" {noun}"
    """Returns what follows a scale: " dollars" behind "three million"."""
    singular_below: float = 1.0
    """The amount below which fractional ones take the singular; others take the plural."""
    percent_before: bool = False
    day_first: bool = True
    date_mark: str = "/"
    dotted_ordinals: bool = False
    """Whether a full stop makes a numeral before a month an ordinal."""
    clock_words: tuple[str, ...] = ()
    """Words that may follow a time and are part of it: Uhr."""
    halves: Mapping[str, str] = field(default_factory=dict)
    """Maps each way to write a.m. and p.m. to am or pm."""
    months: Mapping[str, int] = field(default_factory=dict)
    abbreviations: Mapping[str, Abbreviation] = field(default_factory=dict)
    spaced: bool = True
    """Whether words are separated by spaces."""
    pairs: Callable[[str], str] | None = None
    """Reads the three or four digits of a name in pairs: A380, three eighty."""
    phone_part: Callable[[str], str] | None = None
    """Reads a group of digits in a telephone number; None: digit by digit."""
    whole_decimals: bool = False
    """Whether up to three decimals without a leading zero are read as one number."""
    kings: frozenset[str] = frozenset()
    """Words before a Roman numeral that is an ordinal."""
    chapters: frozenset[str] = frozenset()
    """Words before a Roman numeral that is a cardinal."""
    the: str = ""
    """The article before a Roman numeral that is an ordinal."""
    decade: Callable[[int], str] | None = None
    """Returns the decade that begins with a year, or with the last two digits of one: 1990s."""
    dials: frozenset[str] = frozenset()
    """Words before a short telephone number, which is read digit by digit."""
    phones: str = ""
    """A regular expression for national telephone numbers."""
    glued: str = ""
    """A regular expression for other ways to write a time (14h30): groups hour and minute."""
    plus_or_minus: str = ""
    rules: tuple[Rule, ...] = ()
    """Rules of this language for numbers, tried before those that all languages share."""
    behind: re.Pattern[str] | None = None
    """Matches text from a number on behind which the language's rules look at another word, or
    character where no spaces separate words."""
    numeral_rules: tuple[Rule, ...] = ()
    """Rules for Roman numerals. A pattern's group "roman" holds the numeral."""
    numeral_marks: tuple[str, ...] = ("",)
    """Marks that may be written behind a Roman numeral: XXe."""
    signs: Mapping[str, str] = field(default_factory=dict)
    """The words for characters wherever they stand: √, ≤."""
    comparisons: Mapping[str, str] = field(default_factory=dict)
    """The words for characters before a number: <, ~."""
    per: str = ""
    """The word for the slash in km/h, m/s² and $5/month; "" leaves the slash."""
    divisors: Mapping[str, str] = field(default_factory=dict)
    """The words for what may stand behind that slash, other than units."""
    behind_money: Mapping[str, str] = field(default_factory=dict)
    """The words for what may stand behind an amount of money: $20 min."""
    articles: frozenset[str] = frozenset()
    """Words that make a quantity before a noun an adjective: a five dollar fee."""
    followers: frozenset[str] = frozenset()
    """Words that may belong to a number before them, besides units, months and the like."""
    dotted_units: frozenset[str] = frozenset()
    """Units that may have a full stop before another number, 5 ft. 3 in.; before a word, where a
    language has such units, any may: 5 kg. of rice."""
    after_time: frozenset[str] = frozenset()
    """Capitalised words that may follow a.m. and p.m. within a sentence."""
    decade_cue: re.Pattern[str] | None = None
    """Matches the text that must stand before a decade of two digits: the 90s."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """The words for the marks in mail and web addresses."""
    sharp: str = ""
    """The words for # behind a letter: C#."""
    by: str = ""
    """The word for the x between two lengths, where it is not said as the operator is."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The words for the keys * and # of a telephone."""
    hashtag: str = ""
    """The words for # before a word."""
    numbered: frozenset[str] = frozenset()
    """Words before a # that stands alone and means a number: your order # is 55219."""
    powers: Mapping[str, str] = field(default_factory=dict)
    """The words for ^2 and ², and, with the key "", before any other power; "behind" is what stands
    behind it, where words are not separated by spaces."""
    places: frozenset[str] = frozenset()
    """Words before a house number, if a name follows it."""
    numerals: re.Pattern[str] | None = None
    """Matches Roman numerals that are read behind any capitalised word."""
    before_one: frozenset[str] = frozenset()
    """Words before a Roman numeral that is read although it is I: Part I."""
    behind_one: frozenset[str] = frozenset()
    """Words behind such an I that show that it is no pronoun: Part I is."""
    no_names: frozenset[str] = frozenset()
    """Words before an abbreviation of a place that are no name, in lower case: on St."""
    before_street: re.Pattern[str] | None = None
    """Matches text before Street or Drive where a capital follows: on Oak Dr. She."""
    ending: str = ""
    """An abbreviation that also ends compounds, which are capitalised: Bahnhofstr."""
    behind_text: Mapping[str, tuple[re.Pattern[str], str]] = field(default_factory=dict)
    """Other words for an abbreviation, behind text that the pattern finds: Abs. 1 S. 2, am So. They
    may end a sentence."""
    codes: tuple[Rule, ...] = ()
    """Rules for whole words that begin with one of `code_heads` and a digit: q8h."""
    code_heads: tuple[str, ...] = ()
    spans: Mapping[str, str] = field(default_factory=dict)
    """Short names of days and months, read in full in a range: Mon-Fri."""
    behind_day: frozenset[str] = frozenset()
    """Words behind such a name that show that it is one: Sun closed."""

    def digits(self, text: str) -> str:
        """Return the decimal digits of `text`, one word for each."""
        words = [self.cardinal(int(char)) for char in text if char.isdecimal()]
        return (" " if self.spaced else "").join(words)
