"""What the HTTP routes accept and return, as an OpenAPI 3.1 document.

An `Operation` is one route with one method. The shapes of its bodies are the types that the route
itself reads and writes, so a shape has one definition. openapi_native.py and openapi_dialects.py
list the operations; tests/server/test_openapi.py compares them with the application's routes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain
from typing import Any

import msgspec

from realtime_tts.errors import RouteError
from realtime_tts.version import __version__

JSON = "application/json"
TEXT = "text/plain"

Shape = Any
"""The type of a body that msgspec knows, a tuple of several, or a JSON Schema as a dict."""
Content = Mapping[str, Shape]
"""Shapes of a body, by media type."""

_SCHEMAS = "#/components/schemas/{name}"
_TEXT_SHAPE = {"type": "string"}
_SUMMARY = """\
The HTTP routes of a realtime-tts server. Speech for voice agents, text in while audio comes out, is
on the WebSocket `/v1/tts`, which OpenAPI cannot describe: see PROTOCOL.md in the source."""
_KEYS = "A key of the server, where it has any. A short-lived token will do for speech and lists."


@dataclass(frozen=True, slots=True)
class ErrorCase:
    """One way in which a request is refused."""

    status: int
    code: str
    meaning: str

    @classmethod
    def of(cls, kind: type[RouteError]) -> ErrorCase:
        first = (kind.__doc__ or "").partition("\n\n")[0]
        return cls(kind.status, kind.code, _one_line(first))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in the query. Those in the path are taken from the path."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: _TEXT_SHAPE)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer with one status. `content` is empty for an answer without a body."""

    description: str
    content: Content = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path. `open`: it needs no key."""

    id: str
    method: str = "GET"
    path: str
    summary: str
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: Content = field(default_factory=dict)
    answers: Mapping[int, Answer]
    open: bool = False


Sections = Mapping[str, Sequence[Operation]]
"""Operations by the tag that they have in the document."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Routes that are described elsewhere, at `reference`: those whose path has a prefix."""

    name: str
    reference: str
    prefixes: tuple[str, ...]


def refused(error: Shape, *refusals: ErrorCase) -> dict[int, Answer]:
    """Return an answer with the body `error` for each status of these cases."""
    meanings: dict[int, list[str]] = {}
    for one in refusals:
        meanings.setdefault(one.status, []).append(f"`{one.code}`: {one.meaning}")
    return {status: Answer(" ".join(lines), {JSON: error}) for status, lines in meanings.items()}


def document(sections: Sections, elsewhere: Iterable[Elsewhere]) -> dict[str, Any]:
    """Return the OpenAPI document."""
    types = list(_types(chain(*sections.values())))
    shown, components = msgspec.json.schema_components(types, ref_template=_SCHEMAS)
    schemas = dict(zip(map(repr, types), shown, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for tag, operations in sections.items():
        for one in operations:
            described = {"operationId": one.id, "tags": [tag], **_described(one, schemas)}
            paths.setdefault(one.path, {})[one.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "realtime-tts",
            "version": __version__,
            "summary": "A streaming text-to-speech server for voice agents",
            "description": _one_line(_SUMMARY) + _elsewhere(elsewhere),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "the server that this document comes from"}],
        "security": [{"bearer": []}, {"header": []}, {}],
        "tags": [{"name": tag} for tag in sections],
        "paths": paths,
        "components": {
            "schemas": {name: _tidy(schema) for name, schema in components.items()},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": _KEYS},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def _elsewhere(elsewhere: Iterable[Elsewhere]) -> str:
    described = [f"- {one.name}: {one.reference}" for one in elsewhere if one.reference]
    about = "Routes that speak as other vendors' APIs do are described by those vendors:"
    return f"\n\n{about}\n\n" + "\n".join(described)


def _types(operations: Iterable[Operation]) -> Iterator[Any]:
    """Yield every type that a body has, once."""
    seen = dict[str, Any]()
    for one in operations:
        for content in (one.body, *(answer.content for answer in one.answers.values())):
            for shape in content.values():
                seen |= {repr(each): each for each in _parts(shape)}
    yield from seen.values()


def _parts(shape: Shape) -> tuple[Any, ...]:
    """Return the types in a shape."""
    if isinstance(shape, tuple):
        return shape
    return () if isinstance(shape, dict) else (shape,)


def _schema(shape: Shape, schemas: Mapping[str, Any]) -> Any:
    if isinstance(shape, dict):
        return _tidy(shape)
    found = [schemas[repr(each)] for each in _parts(shape)]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _described(one: Operation, schemas: Mapping[str, Any]) -> dict[str, Any]:
    def content(shapes: Content) -> dict[str, Any]:
        return {media: {"schema": _schema(shape, schemas)} for media, shape in shapes.items()}

    found: dict[str, Any] = {"summary": one.summary}
    if one.description:
        found["description"] = _one_line(one.description)
    if parameters := [*_in_path(one.path), *map(_in_query, one.parameters)]:
        found["parameters"] = parameters
    if one.body:
        found["requestBody"] = {"required": True, "content": content(one.body)}
    found["responses"] = {
        str(status): {"description": answer.description or HTTPStatus(status).phrase}
        | ({"content": content(answer.content)} if answer.content else {})
        for status, answer in sorted(one.answers.items())
    }
    if one.open:
        found["security"] = []
    return found


def _in_path(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", path):
        yield {"name": name, "in": "path", "required": True, "schema": _TEXT_SHAPE}


def _in_query(one: Parameter) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": "query",
        "description": one.description,
        "schema": dict(one.schema),
    }


def _tidy(schema: Any) -> Any:
    """Return the schema without the line breaks of docstrings."""
    if isinstance(schema, list):
        return [_tidy(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _one_line(value) if name == "description" and isinstance(value, str) else _tidy(value)
        for name, value in schema.items()
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())
