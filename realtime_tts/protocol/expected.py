"""What each field of a client's messages accepts, in words, for the errors that name the field."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from realtime_tts.protocol.changes import nested
from realtime_tts.protocol.messages import CLIENT_MESSAGES

EACH = "an array, each "
"""Precedes what each item of an array must be."""


def _fields(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(struct):
        yield field.name, words(field.type)
    for inner in nested(struct).values():
        yield from _fields(inner)


def words(hint: Any) -> str:
    """Describe in words what a value of this type must be; of a union, the first type counts."""
    if get_origin(hint) in (Union, UnionType):
        hint = get_args(hint)[0]
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
        case inspect.IntType(ge=None):
            return "a whole number"
        case inspect.IntType():
            return f"a whole number from {kind.ge} to {kind.le}"
        case inspect.FloatType(ge=None, gt=None):
            return "a number"
        case inspect.FloatType(gt=None):
            return f"a number from {kind.ge:g} to {kind.le:g}"
        case inspect.FloatType():
            return f"a number above {kind.gt:g}, at most {kind.le:g}"
        case inspect.ListType() | inspect.VarTupleType():
            return f"{EACH}{words(get_args(hint)[0])}"
        case inspect.DictType():
            return "an object of strings"
        case _:
            return "an object"


EXPECTED = {"type": "a string"} | {
    name: said for struct in CLIENT_MESSAGES.values() for name, said in _fields(struct)
}
"""What each field must be, by its name; fields with the same name accept the same."""

NUMBERS = frozenset(name for name, said in EXPECTED.items() if "number" in said)
"""Names of the fields that are numbers."""

LISTS = frozenset(name for name, said in EXPECTED.items() if said.startswith(EACH))
"""Names of the fields that are arrays of strings; in a query, commas separate the items."""
