"""Numbers as users write them: terminals for the grammar of `numbers.txt`.

Only forms are made that the teacher reads as an American would. Thus four digits without a comma
are a year, a round number or beyond the years; years begin with 1800; and a dollar amount has two
decimals or none.
"""

from __future__ import annotations

from random import Random

from tools.demo_voice.grammar import Terminal


def _small(rng: Random) -> str:
    return str(rng.randint(1, 20) if rng.random() < 0.5 else rng.randint(2, 99))


def _hundreds(rng: Random) -> str:
    """Three digits, but for those that the teacher reads one by one."""
    low, high = rng.choice(((100, 373), (393, 716), (774, 999)))
    return str(rng.randint(low, high))


def _int(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.3:
        return str(rng.randint(0, 20))
    if kind < 0.6:
        return str(rng.randint(21, 99))
    if kind < 0.85:
        return _hundreds(rng)
    thousands, hundreds = 1000 * rng.randint(1, 9), 100 * rng.randint(22, 99)
    return str(rng.choice((thousands, hundreds, rng.randint(2100, 9999))))


def _big(rng: Random) -> str:
    top = rng.choice((9_999, 99_999, 999_999, 9_999_999, 999_999_999))
    value = rng.randint(1_000, top)
    if rng.random() < 0.5:
        value = max(1_000, value // 1000 * 1000)
    return f"{value:,}"


def _decimal(rng: Random) -> str:
    whole = rng.choice((0, rng.randint(0, 9), rng.randint(10, 99), rng.randint(100, 999)))
    digits = str(rng.randint(1, 9)) if rng.random() < 0.6 else f"{rng.randint(1, 99):02}"
    return f"{whole}.{digits}"


def _year(rng: Random) -> str:
    first, last = rng.choice(((1950, 2030), (1900, 2026), (1800, 1999)))
    return str(rng.randint(first, last))


def _ordinal(value: int) -> str:
    teen = value % 100 in (11, 12, 13)
    return str(value) + ("th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th"))


def _clock(rng: Random) -> str:
    minute = rng.choice((0, 15, 30, 45, 5 * rng.randint(0, 11), rng.randint(0, 59)))
    return f"{rng.randint(1, 12)}:{minute:02}"


def _money(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.4:
        return f"${rng.randint(1, 120)}"
    if kind < 0.6:
        return f"${rng.randint(1, 99)}.{rng.choice((99, 95, 50, 25, 75, rng.randint(1, 99))):02}"
    if kind < 0.8:
        return "$" + _hundreds(rng)
    return f"${rng.randint(1, 99)},{rng.choice((0, 500, rng.randint(0, 999))):03}"


def _million(rng: Random) -> str:
    part = f".{rng.randint(1, 9)}" if rng.random() < 0.4 else ""
    return f"${rng.randint(1, 99)}{part} {rng.choice(('million', 'billion'))}"


def _percent(rng: Random) -> str:
    part = f".{rng.randint(1, 9)}" if rng.random() < 0.25 else ""
    return f"{rng.randint(0, 100)}{part}" + rng.choice(("%", "%", " percent"))


def _phone(rng: Random) -> str:
    area, group, last = rng.randint(200, 989), rng.randint(200, 999), rng.randint(0, 9999)
    forms = ("{g}-{n:04}", "{a}-{g}-{n:04}", "({a}) {g}-{n:04}")
    return rng.choice(forms).format(a=area, g=group, n=last)


def _digits(rng: Random) -> str:
    return " ".join(str(rng.randint(0, 9)) for _ in range(rng.randint(2, 7)))


TERMINALS: dict[str, Terminal] = {
    "small": _small,
    "int": _int,
    "big": _big,
    "decimal": _decimal,
    "year": _year,
    "day_number": lambda rng: str(rng.randint(1, 31)),
    "day_ordinal": lambda rng: _ordinal(rng.randint(1, 31)),
    "small_ordinal": lambda rng: _ordinal(rng.randint(1, rng.choice((12, 100)))),
    "street_number": lambda rng: _ordinal(rng.randint(1, 99)),
    "century": lambda rng: _ordinal(rng.randint(2, 21)),
    "clock": _clock,
    "hour_number": lambda rng: str(rng.randint(1, 12)),
    "money": _money,
    "million": _million,
    "percent": _percent,
    "phone": _phone,
    "digits": _digits,
    "flight": _hundreds,
    "letter": lambda rng: rng.choice("ABCDEFGHJK"),
    "limit": lambda rng: str(5 * rng.randint(3, 70)),
    "version": lambda rng: f"{rng.randint(1, 12)}.{rng.randint(0, 9)}",
}
