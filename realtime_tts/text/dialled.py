"""The keys * and # of a telephone, told from emphasis, products and hashtags by the text around
them: Dial *67, press *9 or *72, *#06#, press * to return, the # key."""

from __future__ import annotations

import re

_VERBS = (
    r"dial|press|enter|wählen?(?: sie)?|drücken?(?: sie)?|composez|tapez|appuyez sur"
    r"|marque|marca|pulse|pulsa|presione|tecla|touche|taste|key"
)
_ASKED = re.compile(rf"\b(?:{_VERBS})(?: (?:the|le|la|el|die))? \Z|按下?\Z", re.IGNORECASE)
_CHOICE = re.compile(
    rf"\b(?:{_VERBS})\b[^.!?\n]*(?:[ ,](?:or|oder|ou(?: sur)?|o|then|and)|[,;]) \Z", re.IGNORECASE
)
_LISTED = re.compile(r"(?<!\S)\*[\d*#]+,? (?:or|and|then|oder|und|dann|ou|et|puis|o|y|luego) \Z")
_CODE = re.compile(r"(?<!\S)\*[\d*#]*\Z")
_FREE = re.compile(r"(?<!\S)\Z")
_KEYS = re.compile(r"\*[\d#]{1,16}")
_ALONE = re.compile(r"[*#](?: (?!of |\d)|[,.;:!?)\n键号]|\Z)")
_OPEN_ALONE = re.compile(r"[*#](?: (?:of?)?|[\u4e00-\u9fff]{1,2})?\Z")
_CHINESE = re.compile(
    r"[*#](?:返回|结束|确认|重[听复新]|退出|转人|进入|取消|跳过|继续|挂断|回到|上一|播放|查询)(?!\*)"
)
"""A key before what it does, where no spaces part the words; 按*确认*按钮 is emphasis."""
_NAMED = re.compile(r"\b(?:the|die|der) \Z", re.IGNORECASE)
_NAMES = (" key", "-key", " button", "-Taste", " Taste")


def is_star(text: str, before: str, ended: bool) -> bool | None:
    """Return whether the star at the beginning of `text` is a key; None if more text is needed.

    `before`: the text before it, at least some words. Behind the digits of emphasis, "press *1*",
    another star stands.
    """
    keys = _KEYS.match(text)
    if text == "*" and not ended and (_FREE.search(before) or _CODE.search(before)):
        return None
    if keys is None:
        return _is_alone(text, before, ended)
    asked = any(cue.search(before) for cue in (_ASKED, _LISTED, _CODE))
    if not asked and _FREE.search(before) is None:
        return False
    behind = text[keys.end() : keys.end() + 2]
    if behind in ("", "*") and not ended:
        return None
    if not asked and "#" not in keys.group():
        return False
    return behind[:1] != "*" or behind[1:].isdecimal()


def is_pound(text: str, before: str, ended: bool) -> bool | None:
    """Return whether the mark # at the beginning of `text` is a key: of a code that began with a
    star, *31#, or one that stands alone. None if more text is needed."""
    return _CODE.search(before) is not None or _is_alone(text, before, ended)


def _is_alone(text: str, before: str, ended: bool) -> bool | None:
    """Return whether a key that nothing follows is asked for, or named; "enter # of guests" asks
    for a number."""
    if _ASKED.search(before) or _CHOICE.search(before):
        if _OPEN_ALONE.match(text) and not ended:
            return None
        return (_ALONE.match(text) or _CHINESE.match(text)) is not None
    if _NAMED.search(before) is None:
        return False
    if not ended and any(name.startswith(text[1:]) for name in _NAMES):
        return text[1:] in _NAMES or None
    return text.startswith(_NAMES, 1)
