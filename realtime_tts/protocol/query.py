"""Settings in the URL: `?voice=ava&seed=7&predictor_temperature=0`, as in `session.start`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from realtime_tts.protocol.changes import nested
from realtime_tts.protocol.expected import LISTS, NUMBERS
from realtime_tts.protocol.messages import SessionStart
from realtime_tts.protocol.parsing import (
    IGNORED_NAMED,
    BadJson,
    BadMessage,
    BadSettings,
    convert,
    describe_unknown,
    load_json,
)

_NOT_FLAT = "lexicon"


def _flat(
    struct: type[msgspec.Struct], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...]]]:
    inner = nested(struct)
    prefix = "predictor_" if path[-1:] == ("predictor",) else ""
    for name in struct.__struct_fields__:
        if name in inner:
            yield from _flat(inner[name], (*path, name))
        elif name != _NOT_FLAT:
            yield prefix + name, (*path, name)


QUERY_FIELDS = dict(_flat(SessionStart))
"""Where the value of each query parameter goes in `session.start`: a path of field names."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a query asks for, and a sentence for each parameter that is ignored."""

    start: SessionStart
    ignored: tuple[str, ...]


def parse_query(query: str) -> Query:
    """Parse a query string (without `?`); empty values count as absent. Raises BadSettings."""
    fields: dict[str, Any] = {"type": "session.start"}
    unknown = []
    for name, value in parse_qsl(query):
        if name in QUERY_FIELDS:
            _put(fields, name, value)
        else:
            unknown.append(name)
    ignored = (describe_unknown(name, "query", QUERY_FIELDS) for name in unknown[:IGNORED_NAMED])
    try:
        return Query(convert(fields, SessionStart), tuple(ignored))
    except BadMessage as error:
        raise BadSettings(f"query: {error}", error.field) from None


def _put(fields: dict[str, Any], name: str, value: str) -> None:
    *parents, last = QUERY_FIELDS[name]
    for parent in parents:
        fields = fields.setdefault(parent, {})
    if last in fields:
        raise BadSettings(f"query: `{name}` is given twice", name)
    fields[last] = value.split(",") if last in LISTS else value
    if last in NUMBERS:
        fields[last] = _number(value)


def _number(value: str) -> Any:
    """Return the number that `value` spells; other values stay as they are, to be refused."""
    try:
        return load_json(value)
    except BadJson:
        return value
