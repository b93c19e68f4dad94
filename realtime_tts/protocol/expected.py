"""What each field of a client's messages takes, in words, for the errors that name it."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from realtime_tts.protocol.changes import nested
from realtime_tts.protocol.messages import CLIENT_MESSAGES


def _fields(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(struct):
        union = get_origin(field.type) in (Union, UnionType)
        yield field.name, _words(get_args(field.type)[0] if union else field.type)
    for inner in nested(struct).values():
        yield from _fields(inner)


def _words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        *most, last = (f'"{value}"' for value in get_args(hint))
        return f"{', '.join(most)} or {last}"
    match kind := inspect.type_info(hint):
        case inspect.Metadata():
            return str((kind.extra_json_schema or {})["description"])
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType(min_length=None):
            return "a string"
        case inspect.StrType():
            return f"a string of {kind.min_length} to {kind.max_length} characters"
        case inspect.IntType():
            return f"a whole number from {kind.ge} to {kind.le}"
        case inspect.FloatType(gt=None):
            return f"a number from {kind.ge:g} to {kind.le:g}"
        case inspect.FloatType():
            return f"a number above {kind.gt:g}, at most {kind.le:g}"
        case inspect.DictType():
            return "an object of strings"
        case _:
            return "an object"


EXPECTED = {"type": "a string"} | {
    name: words for struct in CLIENT_MESSAGES.values() for name, words in _fields(struct)
}
"""By the name of the field; fields of one name take the same."""

NUMBERS = frozenset(name for name, words in EXPECTED.items() if "number" in words)
"""The fields that are numbers."""
