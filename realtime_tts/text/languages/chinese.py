"""Chinese (Mandarin)."""

from __future__ import annotations

from realtime_tts.text.languages import tables
from realtime_tts.text.languages.language import Currency, Language

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
    """A number behind a larger one: ten is 一十 there."""
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


def year(n: int) -> str:
    return "".join(_DIGITS[int(digit)] for digit in str(n))


def time(hour: int, minute: int, second: int | None, half: str) -> str:
    words = {"am": "上午", "pm": "下午"}.get(half, "") + count(hour, "") + "点"
    if minute:
        words += f"{'零' if minute < 10 else ''}{cardinal(minute)}分"
    elif second is None:
        words += "整"
    return words if second is None else f"{words}{cardinal(second)}秒"


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{cardinal(month)}月{cardinal(day)}日"
    return words if in_year is None else f"{year(in_year)}年{words}"


CHINESE = Language(
    name="chinese",
    cardinal=cardinal,
    count=count,
    ordinal=lambda n, mark: cardinal(n),
    year=year,
    time=time,
    date=date,
    decimal_mark=".",
    group_marks=",",
    ordinal_marks="",
    point="点",
    dot="点",
    minus="负",
    plus="加",
    to="到",
    percent="百分之",
    degrees=tables.invariable("度"),
    number_sign="",
    and_sign="和",
    operators={"+": "加", "=": "等于", "×": "乘", "*": "乘", "÷": "除以"},
    currencies=tables.by_name(
        {
            "¥ ￥ CNY": Currency(tables.invariable("元")),
            "$ USD": Currency(tables.invariable("美元")),
            "€ EUR": Currency(tables.invariable("欧元")),
            "£ GBP": Currency(tables.invariable("英镑")),
        }
    ),
    units=tables.nouns(
        tables.invariable,
        "km 公里|m 米|cm 厘米|mm 毫米|kg 公斤|g 克|mg 毫克|L 升|ml 毫升|km/h 公里每小时|m² 平方米"
        "|°C 摄氏度|℃ 摄氏度|GB 吉字节|MB 兆字节|Hz 赫兹|W 瓦|kW 千瓦",
    ),
    scales=tables.nouns(tables.invariable, "万 万|亿 亿"),
    fractions={},
    mixed="又",
    money="",
    of_scale=lambda noun: noun,
    percent_before=True,
    spaced=False,
    phones=r"1[3-9]\d{9}|0\d{2,3}-\d{7,8}",
)
