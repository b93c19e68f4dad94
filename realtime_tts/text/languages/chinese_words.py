"""The words for Chinese numbers, times and dates."""

from __future__ import annotations

_DIGITS = "零一二三四五六七八九"
_POWERS = ((10**12, "万亿"), (10**8, "亿"), (10**4, "万"))


def cardinal(n: int) -> str:
    if n < 10**4:
        return _below_ten_thousand(n)
    power, name = next(pair for pair in _POWERS if n >= pair[0])
    many, rest = divmod(n, power)
    words = ("两" if many == 2 else cardinal(many)) + name
    if not rest:
        return words
    return words + ("零" if rest < power // 10 else "") + _inner(rest)


def _inner(n: int) -> str:
    """Return a number that follows a larger one, where ten is 一十."""
    words = cardinal(n)
    return "一" + words if words.startswith("十") else words


def _below_ten_thousand(n: int) -> str:
    if n < 20:
        return _DIGITS[n] if n < 10 else "十" + (_DIGITS[n - 10] if n > 10 else "")
    words, gap = "", False
    for power, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, n = divmod(n, power)
        if digit:
            words += "零" if gap and words else ""
            words += ("两" if digit == 2 and power == 1000 else _DIGITS[digit]) + name
        gap = not digit
    return words


def count(n: int, gender: str) -> str:
    return "两" if n == 2 else cardinal(n)


def year(n: int | str) -> str:
    """Return a year, digit by digit."""
    return "".join(_DIGITS[int(digit)] for digit in str(n))


def time(hour: int, minute: int, second: int | None, half: str) -> str:
    words = {"am": "上午", "pm": "下午"}.get(half, "") + count(hour, "") + "点"
    if minute:
        words += f"{'零' if minute < 10 else ''}{cardinal(minute)}分"
    else:
        words += "整" if second is None else "零分"
    return words if second is None else f"{words}{cardinal(second)}秒"


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{cardinal(month)}月{cardinal(day)}日"
    return words if in_year is None else f"{year(in_year)}年{words}"
