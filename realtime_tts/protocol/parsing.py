"""Text frames to messages and back. Whatever comes in, only a ProtocolError is raised.

A field that this version does not know is no error. The server side reports it, to warn of `voise`;
the client side ignores it, so that a newer server can say more.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeVar

import msgspec

from realtime_tts.errors import RealtimeTTSError
from realtime_tts.protocol.changes import nested
from realtime_tts.protocol.expected import EACH, EXPECTED
from realtime_tts.protocol.messages import (
    CLIENT_MESSAGES,
    SERVER_MESSAGES,
    ClientMessage,
    Message,
    Played,
    ServerMessage,
    SessionStart,
    Text,
)
from realtime_tts.protocol.settings import Limits

S = TypeVar("S", bound=msgspec.Struct)

MAX_LEVELS = 64
"""Levels of nested objects and arrays that are accepted: no message needs more than a few. The JSON
decoder accepts hundreds, with which recursive code reaches Python's limit."""

IGNORED_NAMED = 4
"""Most fields of one message that a warning names: a peer must not make us write more than it sent,
nor look for what each of a thousand names may have meant."""

_SHOWN_CHARS = 40
_TOO_DEEP = f"nested too deeply: at most {MAX_LEVELS} levels are taken"


class ProtocolError(RealtimeTTSError, code="protocol_error"):
    """A message that cannot be accepted. `code` is sent to the peer."""


class BadJson(ProtocolError, code="bad_json"):
    """The text is not one JSON object."""


class BadMessage(ProtocolError, code="bad_message"):
    """A field is missing, of the wrong type or out of range.

    `field` is its path, empty if it is the whole message.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class BadSettings(BadMessage, code="bad_settings"):
    """A BadMessage in the query of the URL (query.py)."""


class UnknownType(ProtocolError, code="unknown_type"):
    """The message has a `type` that this version does not know."""


class TooLarge(ProtocolError, code="too_large"):
    """The message has more than `max_message_bytes`. `text`: what is missing now, without the text
    itself; None if the message is no `text`."""

    def __init__(self, message: str, text: Text | None = None) -> None:
        super().__init__(message)
        self.text = text


class BinaryNotAllowed(ProtocolError, code="binary_not_allowed"):
    """A binary frame came where only text frames are accepted."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A client message, and a sentence for each field of it that is ignored."""

    message: ClientMessage
    ignored: tuple[str, ...]


def decode_client_message(raw: str | bytes, max_bytes: int = Limits().max_message_bytes) -> Decoded:
    """Decode the message in one WebSocket frame: str for a text frame, bytes for a binary one.

    Raises ProtocolError.
    """
    if isinstance(raw, bytes):
        raise BinaryNotAllowed(
            f"expected a text frame with JSON, found a binary one of {len(raw)} bytes; "
            "a client sends no audio"
        )
    size = 4 * len(raw)  # an upper bound, exact enough if it is allowed
    if size > max_bytes:
        size = len(raw.encode(errors="surrogatepass"))
    if size > max_bytes:
        why = f"expected at most {max_bytes} bytes, found {size}; send it in pieces"
        raise TooLarge(why, _outline(raw))
    fields = load_object(raw)
    struct = _struct_for(fields, CLIENT_MESSAGES)
    message = convert(_given(fields, struct), struct)
    if isinstance(message, Played) and message.played_ms is message.played_samples is None:
        raise BadMessage("played: expected played_ms or played_samples, found neither")
    return Decoded(message, tuple(islice(_unknown_fields(fields, struct), IGNORED_NAMED)))


def parse_server_message(raw: str | bytes) -> ServerMessage:
    """Decode the message in a text frame from the server; unknown fields are ignored.

    Raises ProtocolError. UnknownType means that the server is newer: skip that message.
    """
    if isinstance(raw, bytes):
        raise BinaryNotAllowed("expected a text frame, found a binary one: those are audio")
    fields = load_object(raw)
    return convert(fields, _struct_for(fields, SERVER_MESSAGES))


def encode(message: Message) -> str:
    """Return the message as JSON. A lone surrogate, which UTF-8 cannot carry, becomes U+FFFD."""
    try:
        return msgspec.json.encode(message).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_scrub(msgspec.to_builtins(message))).decode()


# Shared with query.py -----------------------------------------------------------------------


def load_object(raw: str) -> dict[str, Any]:
    """Return the JSON object in `raw`. Raises BadJson."""
    value = load_json(raw)
    if not isinstance(value, dict):
        raise BadJson(f"expected a JSON object, found {_show(value)}")
    return value


def load_json(raw: str) -> Any:
    """Return the JSON value in `raw`, of at most `MAX_LEVELS` levels. Raises BadJson."""
    try:
        value = _DECODER.decode(raw)
    except RecursionError:
        raise BadJson(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")  # which some end with
        if raw.startswith("\ufeff"):
            what = "there is a byte order mark (send UTF-8 without one)"
        raise BadJson(f"not valid JSON: {what} at character {error.pos}") from None
    except ValueError:  # Python's limit on the digits of an integer
        raise BadJson("not valid JSON: a number has too many digits") from None
    if raw.count("{") + raw.count("[") > MAX_LEVELS and _is_deeper(value, MAX_LEVELS):
        raise BadJson(_TOO_DEEP)
    return value


def convert(fields: Mapping[str, Any], struct: type[S]) -> S:
    """Return the struct with these fields. Raises BadMessage that names the field at fault."""
    try:
        return msgspec.convert(fields, struct)
    except msgspec.ValidationError as error:
        raise _explain(str(error), fields) from None
    except UnicodeEncodeError:
        return convert(quotable(fields), struct)


def quotable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields that msgspec can convert, or complain of: it reads no name with a lone
    surrogate, and cannot quote one in a value. If names have some, only they are changed."""
    named: dict[str, Any] = _scrub(fields, values=False)
    return named if named != fields else _scrub(fields)


def describe_unknown(name: str, where: str, known: Collection[str]) -> str:
    """Return a sentence about a field that is ignored, with the known name nearest to it."""
    close = difflib.get_close_matches(name[:64], known, n=1)
    hint = f"; did you mean `{close[0]}`?" if close else ""
    return f"{where}: unknown field {_show(name)} is ignored{hint}"


# Steps --------------------------------------------------------------------------------------


class _Outline(msgspec.Struct):
    """The fields of a `text` that are read if it is too large."""

    type: Literal["text"]
    turn_id: str | None = None
    end: bool | None = None


_OUTLINES = msgspec.json.Decoder(_Outline)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def _outline(raw: str) -> Text | None:
    """Return a `text` without its text; None for anything else. Its other fields are skipped, which
    takes some milliseconds for a megabyte, and about sixty if all of it is escapes; to make objects
    of them may take a hundred. msgspec refuses lone surrogates even in what it skips, and a valid
    `turn_id` has none, so all are replaced."""
    spelled = raw.replace(r"\\", r"\u005c")  # now each backslash begins an escape
    try:
        outline = _OUTLINES.decode(_SURROGATE.sub(r"\\ufffd", spelled))
        given = {"text": "", "turn_id": outline.turn_id, "end": bool(outline.end)}
        return msgspec.convert(given, Text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether objects and arrays are nested more than `levels` deep."""
    layer = [value]
    for _ in range(levels + 1):
        inner = [each for each in layer if isinstance(each, dict | list)]
        if not inner:
            return False
        layer = [
            item for each in inner for item in (each.values() if isinstance(each, dict) else each)
        ]
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise BadJson(f"not valid JSON: the name {_show(twice)} comes twice in one object")
    return fields


def _no_constant(name: str) -> Any:
    raise BadJson(f"not valid JSON: {name} is no JSON number")


# The standard library's decoder, since msgspec's refuses lone surrogates: a JavaScript client makes
# two of them when it cuts a string inside an emoji, and the text pipeline joins them again.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _struct_for(fields: Mapping[str, Any], known: Mapping[str, type[S]]) -> type[S]:
    kind = fields.get("type")
    if not isinstance(kind, str):
        found = _show(kind) if "type" in fields else "none"
        raise BadMessage(f"`type` must be {EXPECTED['type']}, found {found}", "type")
    if kind not in known:
        raise UnknownType(f"unknown type {_show(kind)}; known are {', '.join(known)}")
    return known[kind]


def _given(fields: dict[str, Any], struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the fields without those that are null, which only in `session.start` mean more than
    being left out."""
    if struct is SessionStart or None not in fields.values():
        return fields
    return {name: value for name, value in fields.items() if value is not None}


_WHERE = re.compile(r" - at `\$\.(?P<path>[^`]*)`\Z")
_STEP = re.compile(r"([^.[]+)(?:\[(\d+)\])?")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")


def _explain(problem: str, fields: Mapping[str, Any]) -> BadMessage:
    """Turn msgspec's words into: which field, what was expected, what was found."""
    kind = fields["type"]
    where = _WHERE.search(problem)
    path = where["path"].removesuffix("[...]") if where else ""
    if missing := _MISSING.search(problem):
        name = f"{path}.{missing['name']}".lstrip(".")
        return BadMessage(f"{kind}: `{name}` is missing; it must be {_expected(name)}", name)
    found: Any = fields
    for name, item in _STEP.findall(path):
        found = found.get(name) if isinstance(found, dict) else found
        found = found[int(item)] if item else found
    return BadMessage(f"{kind}: `{path}` must be {_expected(path)}, found {_show(found)}", path)


def _expected(path: str) -> str:
    name, item = _STEP.findall(path)[-1] if path else ("", "")
    said = EXPECTED.get(name, "of another type")
    return said.removeprefix(EACH) if item else said


def _show(value: Any) -> str:
    """Return a peer's value, short enough for an error message, and valid in any encoding."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    # Ours may hold what JSON cannot.
    text = valid_unicode(json.dumps(value, ensure_ascii=False, default=repr))
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."


def _unknown_fields(
    fields: Mapping[str, Any], struct: type[msgspec.Struct], path: str = ""
) -> Iterator[str]:
    known = struct.__struct_fields__
    for name, value in fields.items():
        if name == "type" and not path:
            continue
        if name not in known:
            yield describe_unknown(name, path or str(fields["type"]), known)
        elif isinstance(value, dict) and name in nested(struct):
            yield from _unknown_fields(value, nested(struct)[name], name)


def _scrub(value: Any, *, values: bool = True) -> Any:
    """Return the value with surrogate pairs joined and lone surrogates replaced: in the names of
    objects, and in `values`."""
    if isinstance(value, str):
        return valid_unicode(value) if values else value
    if isinstance(value, Mapping):
        return {valid_unicode(name): _scrub(item, values=values) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scrub(item, values=values) for item in value]
    return value


def valid_unicode(text: str) -> str:
    """Return the text with surrogate pairs joined and lone surrogates, which no encoding can carry,
    replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
