"""What `<say-as interpret-as="...">` asks for: letters one by one, digits, dates, amounts."""

from __future__ import annotations

import re

from realtime_tts.text.languages.language import YEARS, Language
from realtime_tts.text.languages.reading import NumberReader, reader_for

_GROUPS = re.compile(r"\d+|[^\W\d_]+")
_NUMBERS = re.compile(r"\d+")
_LONG_PHONE = 7
_DATES = {order: order for order in "mdy dmy ymd md dm ym my d m y".split()} | {
    "yyyymmdd": "ymd",
    "mm/dd/yyyy": "mdy",
    "dd/mm/yyyy": "dmy",
    "yyyy-mm-dd": "ymd",
    "dd.mm.yyyy": "dmy",
}


def said_as(kind: str, text: str, detail: str, language: Language | None) -> str | None:
    """Return the words for `text`; None if it is not of that kind, or needs no other words.

    Without a language, letters and digits are only separated.
    """
    if kind in ("characters", "spell-out", "verbatim"):
        return _characters(text, language)
    if kind in ("digits", "telephone", "phone"):
        return _digits(text, language, telephone=kind != "digits")
    if language is None:
        return None
    if kind == "date":
        return _date(text, detail, language)
    if kind in ("ordinal", "cardinal", "number"):
        return _number(text, language, ordinal=kind == "ordinal")
    return _money(text, detail, language)


def _characters(text: str, language: Language | None) -> str:
    """Return each letter, digit and mark by its name; a space separates groups."""
    marks = language.addresses if language else {}
    groups = []
    for group in text.split():
        said = [
            _spaced(char, language)
            if char.isdecimal()
            else char.upper()
            if char.isalpha()
            else marks.get(char, "")
            for char in group
        ]
        groups.append(_space(language).join(name.strip() for name in said if name))
    return _comma(language).join(group for group in groups if group)


def _space(language: Language | None) -> str:
    return " " if language is None or language.spaced else ""


def _comma(language: Language | None) -> str:
    return ", " if language is None or language.spaced else "，"


def _digits(text: str, language: Language | None, *, telephone: bool) -> str | None:
    groups = _GROUPS.findall(text)
    if not groups:
        return None
    if telephone and len(groups) == 1 and len(groups[0]) >= _LONG_PHONE:
        groups = _in_parts(groups[0])
    say = language.phone_part if telephone and language else None
    parts = [
        (say(group) if say else _spaced(group, language))
        if group.isdecimal()
        else _characters(group, language)
        for group in groups
    ]
    joined = _comma(language).join(parts)
    plus = telephone and text.lstrip().startswith("+") and language
    return f"{language.plus} {joined}" if plus and language else joined


def _spaced(digits: str, language: Language | None) -> str:
    return language.digits(digits) if language else " ".join(digits)


def _in_parts(digits: str) -> list[str]:
    """Split into groups of three, four digits at the end; the first has what is left over."""
    rest, last = digits[:-4], digits[-4:]
    first = len(rest) % 3
    return (
        [rest[:first]] * bool(first)
        + [rest[n : n + 3] for n in range(first, len(rest), 3)]
        + [last]
    )


def _number(text: str, language: Language, *, ordinal: bool) -> str | None:
    match = re.fullmatch(r"(\d{1,15})(?:\.|st|nd|rd|th|er|re|e|º|ª|º\.)?", text.replace(",", ""))
    if match is None:
        return None
    value = int(match.group(1))
    return language.ordinal(value, "") if ordinal else language.cardinal(value)


def _date(text: str, detail: str, language: Language) -> str | None:
    """Read a date in its format's order, else in the language's; return None if neither fits."""
    numbers = _NUMBERS.findall(text)
    if len(numbers) == 1 and len(numbers[0]) == 8:
        numbers = [numbers[0][:4], numbers[0][4:6], numbers[0][6:]]
    order = _DATES.get(detail.replace(" ", ""), "")
    if not order and len(numbers) == 3:
        first = len(numbers[0]) == 4
        order = "ymd" if first else "dmy" if language.day_first else "mdy"
    if not order or len(order) != len(numbers):
        return None
    found = {part: int(number) for part, number in zip(order, numbers, strict=True)}
    month, day, year = found.get("m"), found.get("d"), found.get("y")
    if not (1 <= (month or 1) <= 12 and 1 <= (day or 1) <= 31):
        return None
    if year is not None and year < 100:
        year += 2000 if year < 50 else 1900
    if day is not None and month is not None:
        return language.date(day, month, year, "")
    if month is None:
        return _alone(day, year, language)
    names = {number: name for name, number in reversed([*language.months.items()])}  # full names
    name = names.get(month)
    return None if name is None or year is None else f"{name} {_year(year, language)}"


def _alone(day: int | None, year: int | None, language: Language) -> str | None:
    if year is not None:
        return _year(year, language)
    return language.ordinal(day, "") if day is not None else None


def _year(year: int, language: Language) -> str:
    return language.year(year) if year in YEARS else language.cardinal(year)


def _money(text: str, currency: str, language: Language) -> str | None:
    """Read an amount, with its currency in the text or beside it."""
    reader = reader_for(language)
    code = currency.upper()
    sides = [f"{text} {code}", f"{code} {text}", text] if code else [text]
    bare = re.fullmatch(r"([^\d\s]{1,3})\s*(\d[\d.,]*)|(\d[\d.,]*)\s*([^\d\s]{1,3})", text)
    if bare is not None:
        number, sign = bare[2] or bare[3], bare[1] or bare[4]
        sides += [f"{sign}{number}", f"{number} {sign}", f"{sign} {number}"]
    return next((words for side in sides if (words := _amount(reader, side))), None)


def _amount(reader: NumberReader, text: str) -> str | None:
    reading = reader.read_money(text)
    if reading is None and text[:1] and not text[0].isalpha():
        reading = reader.read(text, "")
    whole = reading is not None and reading.length == len(text)
    return reading.words if reading is not None and whole else None
