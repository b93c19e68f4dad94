"""Rules for Chinese numbers by the words around them: two, years, codes, rooms, ranges and more."""

from __future__ import annotations

import re
from collections.abc import Callable

from realtime_tts.text.languages import forms
from realtime_tts.text.languages.chinese_words import cardinal, count, date, time, year
from realtime_tts.text.languages.rules import dated, linked, ratios, rule, vehicles

_MEASURE = (
    "(?:小时|公顷|英寸|层(?=楼)|代(?=人)|手(?=准)|级(?=台)|下(?![午半周面])|[队班](?=人)|分钟|公里|公斤|公分|美元|欧元|英镑|港元|星期|平方|立方|毫升|毫米|厘米|千克|千米|年(?!级)|次(?!方|元)|分(?!之)"
    "|[个位只条张本天周名件块杯种岁点人家台辆部座间套双支份封首句篇遍场倍米吨升盒包颗棵朵头匹项组款把架艘所国轮盘室瓶碗"
    "斤元角毛秒千万亿晚口门道扇幅顶滴串束排袋箱桶罐根枝粒片栋幢回趟段届顿勺副堆群成寸尺幅声步局岸侧样类批]|站(?![台点名内])|[大小]勺|[汤茶]匙)"
)
"""Measure words before which two is 两. Floors, rooms, lines, classes and ranks have 二."""
_DASH = "[-–—~～]"
_NUMBER = r"\d+(?:\.\d+)?"
_PROVINCE = "[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼]"
_YEARLY = "(?:学年|财年|年度|赛季)"
_CODES = (
    "(?:验证码|PIN码?|[订案]?[件单]?编号|[订保]单号|流水号|后[四4六6]位|房号|密码|邮编|尾号|代码|口令|QQ|账号|卡号|单号|工号|学号"
    "|错误码?|错误代码|状态码|端口号?)(?:是|为|：|:)?\\s?"
)
_CALLS = "(?:拨打|拨|打|致电|呼叫|热线|电话|报警|火警|急救|客服|号码)(?:是|为|：|:)?\\s?"

_BEFORE_DAY = r"(?:预计|[将定]于|(?<![小大等低高多少优])于|截止到?|截至|到期日?|日期)[是为：:]?\s?"

BEHIND = re.compile(
    r"(?s:.*\d)\D?|.*\d[元次]/|985、\d{0,2}|(?:\+86 ?)?(?:1[3-9]\d ?(?:\d{1,4} ?\d{0,3})?)?"
)
"""Text from a number on behind which the rules look at another character."""


def _dial(match: re.Match[str]) -> str:
    """Return the digits of a telephone number, where one is 幺."""
    groups = re.findall(r"\d+", match.group())
    words = "，".join(map(year, groups)).replace("一", "幺")
    if match.group()[0] != "+":
        return words
    return "加" + words


def _number(text: str) -> str:
    whole, point, decimals = text.partition(".")
    return cardinal(int(whole)) + (f"点{year(decimals)}" if point else "")


def _year(match: re.Match[str]) -> str | None:
    number = int(match["year"])
    return None if number % 1000 == 0 and number != 2000 else year(match["year"])


def _date(match: re.Match[str]) -> str | None:
    day, month = int(match["day"]), int(match["month"])
    return date(day, month, int(match["year"]), "") if 1 <= day <= 31 and month <= 12 else None


def _spelled(match: re.Match[str]) -> str:
    return year(match.group())


def _to(words: Callable[[str], str]) -> Callable[[re.Match[str]], str]:
    return lambda match: words(match["one"]) + "到"


def _degrees(match: re.Match[str]) -> str:
    signs = ["负" if match[sign] else "" for sign in ("below", "to")]
    return f"{signs[0]}{_number(match['one'])}到{signs[1]}"


def _fraction(match: re.Match[str]) -> str | None:
    above, below = int(match["above"]), int(match["below"])
    if not 0 < above < below <= 1000:
        return None
    return f"{'百' if below == 100 else cardinal(below)}分之{cardinal(above)}"


def _rated(match: re.Match[str]) -> str:
    return f"{_number(match['one'])}，满分{_number(match['two'])}"


def _lasting(match: re.Match[str]) -> str:
    """Read how long something lasts: 2h45min, 2:00:35."""
    hour, minute, second = match["hour"], int(match["minute"]), match.groupdict().get("second")
    words = f"{count(int(hour), '')}小时" if int(hour) else ""
    words += f"{cardinal(minute)}{'分' if second else '分钟'}"
    return words + (f"{cardinal(int(second))}秒" if second else "")


def _time(match: re.Match[str]) -> str:
    return time(int(match["hour"]), int(match["minute"]), None, "") + "到"


_over = linked(cardinal, "比", "毫米汞柱")

RULES = (
    rule(
        r"(?:\+\d{2} ?)?1[3-9]\d{9}(?!\d)|(?:\+\d{2} )?1[3-9]\d(?P<mark>[- ])\d{4}(?P=mark)\d{4}",
        _dial,
    ),
    rule(r"\+86[- ]\d{2,3}[- ]\d{4}[- ]?\d{3,4}(?!\d)", _dial),
    rule(
        r"\d{4}(?: \d{4}){2,4}(?: \d{1,3})?(?!\d)",
        lambda m: "，".join(map(year, m.group().split())),
    ),
    rule(
        r"\d{1,4}(?:-\d{1,4}){1,3}(?!\d)",
        lambda m: "，".join(map(year, m.group().split("-"))),
        r"取[件货]码[是为：:]?\s?",
    ),
    rule(r"0\d{2,3}[- ]\d{3,4} ?\d{4}(?!\d)|[48]00(?P<gap>[- ])\d{3}(?P=gap)\d{4}(?!\d)", _dial),
    rule(r"\d{3,8}(?![\d.个通次分块元])", _dial, _CALLS),
    rule(r"\d{3,}(?:-\d{2,})*", lambda m: "，".join(map(year, m.group().split("-"))), _CODES),
    rule(rf"(?P<one>\d+){_DASH}(?=\d)", _to(_number), "第"),
    rule(r"\d+(?![\d.])", lambda m: _number(m.group()), "第"),
    rule(r"\d{1,3}(?:\.\d{1,3}){3}(?![\d.])", lambda m: "点".join(map(year, m.group().split(".")))),
    rule(r"(?P<year>[12]\d{3})(?P<m>[/.])(?P<month>\d{1,2})(?P=m)(?P<day>\d{1,2})(?!\d)", _date),
    rule(rf"(?P<one>[12]\d{{3}}){_DASH}(?=[12]\d{{3}}(?:年|{_YEARLY}))", _to(year)),
    rule(
        rf"(?P<one>[12]\d{{3}}){_DASH}(?P<two>[12]\d{{3}})(?=[）)])",
        lambda m: f"{year(m['one'])}到{year(m['two'])}",
        "[（(]",
    ),
    rule(r"(?:12306|12315|100\d\d|95\d{3})(?=[网平热客])", _dial),
    rule(r"\d{1,4}(?=年)", _spelled, "公元前?"),
    rule(r"(?:19|20)\d\d(?=[〕】])", _spelled, "[〔【]"),
    rule(rf"(?:19|20)\d\d(?=[）)](?:最|{_PROVINCE}))", _spelled, "[（(]"),
    rule(
        r"(?P<one>\d{2})/(?P<two>\d{2})(?![\d/])",
        linked(cardinal, "，"),
        r"(?:尺码|码数|鞋码)[是为：:]?\s?",
    ),
    rule(r"\d{3,5}(?!\d)", _dial, r"\d ?转(?:分机)?\s?"),
    rule(r"(?P<hour>\d{1,2}) ?h ?(?P<minute>\d{1,2}) ?min(?![A-Za-z])", _lasting),
    rule(
        r"(?P<hour>\d{1,2}):(?P<minute>[0-5]\d):(?P<second>[0-5]\d)(?!\d)",
        _lasting,
        r"(?:成绩|用时|耗时|时长|记录|纪录)[是为：:]?\s?",
    ),
    rule(r"5\.1(?=假|劳动)", lambda m: "五一"),
    rule(r"(?P<month>[01]\d)-(?P<day>[0-3]\d)(?= \d\d?:\d\d)", dated(date)),
    rule(r"\d{3,4}(?![\d.个元米平户])", _spelled, "(?:单元|[栋幢]|号楼)"),
    rule(r"(?P<n>\d{2,4})-(?=\d{1,3}(?![\d人个件天]))", lambda m: _number(m["n"]) + "减", "满"),
    rule(r"(?P<year>\d{4})(?=年)", _year),
    rule(rf"(?:19|20)\d\d(?=[届级款版]|{_YEARLY})", _spelled),
    rule(r"0\d(?=[年后级届])|[5-9]\d(?=年(?:\d{1,2}月|[春夏秋冬初末底]))", _spelled),
    rule(r"[05-9][05](?=后(?![来面天年]))", _spelled),
    rule(r"(?P<n>\d{1,2})(?=[A-L](?:座|号))", lambda m: _number(m["n"])),
    rule(r"\d{1,2}(?=[A-L])", lambda m: _number(m.group()), r"座位号?[是为：:]?\s?"),
    rule(
        r"(?P<one>1\d\d)/(?P<two>\d{2,3})(?=[ABCY](?!\w))",
        lambda m: f"{year(m['one'])}，{_number(m['two'])}",
    ),
    rule(
        r"\d{4,6}",
        _spelled,
        rf"{_PROVINCE}[A-Z]·?",
    ),
    rule(r"\d{3,}(?!\d)", _spelled, r"#[A-Z]{1,8}-"),
    rule(r"\d{3,4}(?=号?房|室|教室)|\d{3}(?=路)", _spelled),
    rule(
        r"985(?=[高院大、])|211(?=[高院大工])|996(?=工作|加班)|315(?=晚会)|618(?=[大购活])",
        _spelled,
    ),
    rule(r"211", _spelled, "985、"),
    rule(r"5(?=A[级景])", _spelled),
    rule(r"100%", lambda m: "百分之百"),
    rule(rf"(?P<n>{_NUMBER})‰", lambda m: "千分之" + _number(m["n"])),
    rule(
        rf"(?P<one>{_NUMBER}){_DASH}(?P<two>{_NUMBER})%",
        lambda m: f"百分之{_number(m['one'])}到{_number(m['two'])}",
    ),
    rule(rf"(?P<hour>\d{{1,2}}):(?P<minute>[0-5]\d){_DASH}(?=\d{{1,2}}:\d\d)", _time),
    rule(rf"2(?={_MEASURE})", lambda m: "两"),
    rule(rf"2{_DASH}(?={_NUMBER}{_MEASURE})", lambda m: "两到"),
    rule(rf"(?P<one>{_NUMBER}){_DASH}(?=2{_MEASURE})", _to(_number)),
    rule(
        r"(?P<one>\d{2,3})/(?P<two>\d{2,3})(?![\d/])(?!mmHg|毫米)",
        _over,
        r"(?:血压|BP)[^\d。]{0,4}",
    ),
    rule(
        r"(?P<one>\d{2,3})/(?P<two>\d{2,3})(?P<unit>mmHg|毫米汞柱)",
        _over,
    ),
    rule(r"(?P<one>\d\.\d+)/(?P<two>5|10)(?![\d/.])", _rated),
    forms.expiries(
        lambda month, of: f"{year(of)}年{cardinal(month)}月",
        r"(?:有效期[至到]?|卡[^。]{0,12}[于将])[是为：:]?\s?",
    ),
    forms.moments(date, time, cardinal, {"+": "加", "-": "减"}, comma=""),
    forms.aircraft(lambda n: year(n) if n % 100 else cardinal(n), space=""),
    rule(
        r"(?P<one>\d{1,3})/(?P<two>100|1[25]0)(?=分)",
        lambda m: f"{_number(m['one'])}分，满分{_number(m['two'])}",
    ),
    rule(
        r"(?P<one>\d{1,2})-(?P<two>\d{1,2})(?=[、，,。]|\Z)",
        linked(cardinal, "比"),
        r"(?:比分|加时赛?|[半上下全终]场|点球(?:大战)?|总分)[是为：:]?\s?"
        r"(?:\d{1,2}-\d{1,2}[、，,] ?)*",
    ),
    rule(r"(?P<month>0?\d|1[0-2])/(?P<day>[0-3]?\d)(?![\d/.])", dated(date), _BEFORE_DAY),
    rule(
        r"(?P<n>\d{1,3}) (?P<above>\d{1,2})/(?P<below>\d{1,2})(?![\d/])",
        lambda m: f"{_number(m['n'])}又{part}" if (part := _fraction(m)) else None,
    ),
    rule(r"(?P<above>\d+)/(?P<below>\d+)(?![\d/])", _fraction),
    rule(rf"(?P<below>-?)(?P<one>{_NUMBER})[~～](?P<to>-?)(?=\d)", _degrees),
    rule(r"-(?=\d{1,4}[年月日号点])", lambda m: "到", "[年月日号点]"),
    rule(r"(?P<n>\d+)-(?=\d+=)", lambda m: _number(m["n"]) + "减"),
    rule(r"(?P<n>(?!0x)\d+)[x×](?=\d)", lambda m: _number(m["n"]) + "乘"),
    *vehicles(lambda n: year(str(n)) if n > 99 else cardinal(n)),
    rule(r"(?P<n>\d{1,3}(?:,\d{3})+|\d+)\.00(?=元)", lambda m: _number(m["n"].replace(",", ""))),
    rule(r"(?P<n>\d{2,4})M(?![A-Za-z\d])", lambda m: _number(m["n"]) + "兆"),
    *ratios(cardinal, "比", "比"),
)
