"""The syntax of tags and entities, at the beginning of a text that may continue.

This module decides what is a tag and what only looks like one; `markup.py` decides what it means.
"""

from __future__ import annotations

import re
from html import unescape
from typing import NamedTuple

from realtime_tts.text.elements import FLAGGED, KNOWN, VOICING
from realtime_tts.text.marks import Step

_NAME = r"[A-Za-z][\w.:-]*"
_QUOTED = r"\\\"[^\"\\\n]*\\\"|\"[^\"\n]*\"|'[^'\n]*'|“[^”\n]*”"
_BARE = r"[^\s\"'“\\<>=`]+"
_ATTRIBUTE = rf"\s+(?P<key>{_NAME})\s*=\s*(?P<value>{_QUOTED}|{_BARE})"
_ATTRIBUTES = rf"(?:\s+{_NAME}\s*=\s*(?:{_QUOTED}|{_BARE}))*"
_OPEN_VALUE = rf"\\(?:\"[^\"\\\n]*\\?)?|\"[^\"\n]*|'[^'\n]*|“[^”\n]*|{_BARE}|"
_FINDS = re.compile(_ATTRIBUTE)
_TAG = re.compile(
    rf"<(?P<end>/\s*)?(?P<name>{_NAME})(?P<own>\s*=\s*(?:{_QUOTED}|{_BARE}))?"
    rf"(?P<attributes>{_ATTRIBUTES})(?P<flags>(?:\s+{_NAME})*)"
    r"\s*(?P<alone>/?)\s*>"
)
_FLAG = re.compile(rf"<{_NAME}{_ATTRIBUTES}\s+{_NAME}\s+[^\s=>/]")
_OPEN = re.compile(
    rf"<(?:(?:/\s*)?|(?:/\s*)?{_NAME}(?:\s*=\s*(?:{_OPEN_VALUE})|(?:\s*=\s*(?:{_QUOTED}|{_BARE}))?{_ATTRIBUTES}(?:\s+{_NAME})*"
    rf"(?:\s*|\s+{_NAME}\s*=\s*(?:{_OPEN_VALUE}))/?\s*))\Z"
)
_TOKEN = re.compile(r"<\|\w{1,40}\|>")
_OPEN_TOKEN = re.compile(r"<\|\w{0,40}\|?\Z")
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,8}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_OPEN_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{0,8}|#(?:\d{1,7}|[xX][0-9A-Fa-f]{0,6})?)?\Z")
_DECLARATIONS = ("<!--", "<![CDATA[", "<!", "<?")


class Tag(NamedTuple):
    """One tag. `name` is in lower case; a closing tag `ends`, and one like `<br/>` is `alone`."""

    length: int
    name: str
    attributes: dict[str, str]
    ends: bool
    alone: bool


NO_TAG = Tag(0, "", {}, False, False)


def read_tag(text: str, inside_word: bool, ended: bool) -> Tag | None:
    """Return the tag at the beginning; its length is 0 for none; None if more text is needed.

    Between `<` and `>` are a name and attributes with values: `<y and y>` is text. Behind a letter
    or digit (`inside_word`) a name alone must be a known one: `List<String>` is text. A tag that
    the end of the text cuts still counts, unless it is a single letter; and so does one whose value
    is cut by the end of the line.
    """
    match = _TAG.match(text)
    if match is not None:
        return _tag_of(match, inside_word)
    if (token := _TOKEN.match(text)) is not None:
        return Tag(token.end(), "", {}, True, False)
    if not is_open(text):
        line = text.partition("\n")[0]
        broken = len(line) < len(text) and "=" in line and is_open(line)
        return Tag(len(line), "", {}, True, False) if broken else NO_TAG
    if not ended:
        return None
    written = _name_of(text)
    if len(text) == len(written) + 1:
        known = not inside_word or any(word.startswith(written) for word in KNOWN)
        if len(written) == 1 or not known:
            return NO_TAG
    return Tag(len(text), "", {}, True, False)


def is_open(text: str) -> bool:
    """Return whether more text may make a tag of it."""
    if text[:1] != "<":
        return False
    if any(word.startswith(text) and word != text for word in _DECLARATIONS):
        return True
    if text[1:2] == "|":
        return _OPEN_TOKEN.match(text) is not None
    return _OPEN.match(text) is not None and not _is_prose(text)


def _is_prose(text: str) -> bool:
    """Return whether it is a name and words without values: `<b and c`."""
    match = _FLAG.match(text)
    return match is not None and _name_of(text) not in FLAGGED


def _name_of(text: str) -> str:
    match = re.match(rf"<(?:/\s*)?({_NAME})", text)
    return match.group(1).lower().rstrip(":") if match else ""


def _tag_of(match: re.Match[str], inside_word: bool) -> Tag:
    name = match["name"].lower().rstrip(":")
    marked = match["end"] or match["alone"] or match["attributes"]
    said = (match["own"] or "").strip(" =") or match["flags"].strip()
    if (match["flags"] and name not in FLAGGED) or (match["own"] and name not in KNOWN):
        return NO_TAG
    if inside_word and not marked and name not in KNOWN:
        return NO_TAG
    attributes = {
        each["key"].lower(): _value(each["value"]) for each in _FINDS.finditer(match["attributes"])
    }
    if said and name in VOICING:
        attributes.setdefault("value", _value(said))
    return Tag(match.end(), name, attributes, bool(match["end"]), bool(match["alone"]))


def _value(written: str) -> str:
    if written.startswith("\\"):
        written = written[1:-2] + '"'
    value = written[1:-1] if written[0] in "\"'“" else written
    shown = "".join(char if char.isprintable() else " " for char in unescape(value))
    return " ".join(shown.split())


def declaration(text: str, ended: bool) -> str | None:
    """Return the mark with which a comment, CDATA or declaration begins (`<!`, `<?`); "" for none;
    None if more text is needed."""
    if any(len(text) < len(word) and word.startswith(text) for word in _DECLARATIONS[:2]):
        return text if ended else None
    if len(text) < 3:
        return text if ended else None
    word = next((word for word in _DECLARATIONS if text.startswith(word)), "")
    if len(word) == 2 and not text[2:3].isalpha():
        return ""
    return word


def entity(text: str, ended: bool) -> tuple[int, str] | None:
    """Return the length of the entity at the beginning, `&amp;`, and its character; length 0 for
    none; None if more text is needed."""
    match = _ENTITY.match(text)
    if match is None:
        return None if not ended and _OPEN_ENTITY.match(text) else (0, "")
    char = unescape(match.group())
    if char == match.group() or len(char) != 1 or not (char.isprintable() or char.isspace()):
        return 0, ""
    return match.end(), char


def closing(text: str, word: str, ended: bool) -> Step:
    """Return the length up to and with `word`; of all but a beginning of it, if it is not there."""
    at = text.find(word)
    if at >= 0:
        return at + len(word)
    if ended:
        return len(text)
    kept = next(n for n in range(len(word) - 1, -1, -1) if text.endswith(word[:n]))
    return len(text) - kept or None
