"""The keys * and # of a telephone, told from emphasis, products and hashtags by the text before
them: Dial *67, press *9 or *72, *#06#."""

from __future__ import annotations

import re

_ASKED = re.compile(
    r"\b(?:dial|press|enter|wählen?(?: sie)?|drücken?(?: sie)?|composez|tapez|appuyez sur"
    r"|marque|marca|pulse|pulsa|presione)(?: (?:the|le|la|el|die))? \Z",
    re.IGNORECASE,
)
_LISTED = re.compile(r"(?<!\S)\*[\d*#]+,? (?:or|and|then|oder|und|dann|ou|et|puis|o|y|luego) \Z")
_CODE = re.compile(r"(?<!\S)\*[\d*#]*\Z")
_KEYS = re.compile(r"\*[\d#]{1,16}")


def is_star(text: str, before: str, ended: bool) -> bool | None:
    """Return whether the star at the beginning of `text` is a key; None if more text is needed.

    `before`: the text before it, at least some words. Behind the digits of emphasis, "press *1*",
    another star stands.
    """
    if not any(cue.search(before) for cue in (_ASKED, _LISTED, _CODE)):
        return False
    keys = _KEYS.match(text)
    if keys is None:
        return None if text == "*" and not ended else False
    behind = text[keys.end() : keys.end() + 2]
    if behind in ("", "*") and not ended:
        return None
    return behind[:1] != "*" or behind[1:].isdecimal()


def is_pound(before: str) -> bool:
    """Return whether the mark # is a key of a code that began with a star: *31#."""
    return _CODE.search(before) is not None
