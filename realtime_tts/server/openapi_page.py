"""`/openapi.json`, and a page made of it at `/docs`: every operation, then every shape.

Both are made once per process, from the source alone, and say nothing about this server: like the
demo page, they need no key.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from importlib import resources
from typing import Any

import msgspec
from starlette.routing import Route

from realtime_tts.server.openapi import JSON, document
from realtime_tts.server.openapi_dialects import ELSEWHERE
from realtime_tts.server.openapi_dialects import OPERATIONS as DIALECTS
from realtime_tts.server.openapi_native import DOCS_PATH, OPENAPI_PATH, STYLE_PATH
from realtime_tts.server.openapi_native import OPERATIONS as NATIVE
from realtime_tts.server.static import bytes_route, file_route

Schema = Mapping[str, Any]

_METHODS = ("get", "put", "post", "patch", "delete")
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}
_MARKED = re.compile(r"`([^`]+)`|(https?://[^\s`]+)")


@functools.cache
def openapi() -> dict[str, Any]:
    """Return the document, which is the same for everybody."""
    return document({**DIALECTS, **NATIVE}, ELSEWHERE)


@functools.cache
def _made() -> tuple[bytes, bytes]:
    page = html_page(openapi(), STYLE_PATH, OPENAPI_PATH)
    return msgspec.json.encode(openapi()), page.encode()


def reference_routes() -> Iterator[Route]:
    """Yield the routes of the document, of the page, and of its style sheet."""
    described, page = _made()
    yield bytes_route(OPENAPI_PATH, described, JSON)
    yield bytes_route(DOCS_PATH, page, "text/html")
    server = resources.files("realtime_tts.server")
    yield file_route(STYLE_PATH, server.joinpath("openapi.css"))


def html_page(document: Mapping[str, Any], stylesheet: str, json_path: str) -> str:
    """Return the whole page."""
    title = escape(document["info"]["title"])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}: HTTP API</title>\n"
        f'<link rel="stylesheet" href="{stylesheet}">\n'
        '<link rel="icon" href="data:,">\n</head>\n<body>\n<main>\n'
        f"<h1>{title}: HTTP API</h1>\n"
        f"<p>Version {escape(document['info']['version'])}. "
        f'<a href="{json_path}">OpenAPI {document["openapi"]}</a></p>\n'
        f"{html_body(document)}\n</main>\n</body>\n</html>\n"
    )


def html_body(document: Mapping[str, Any]) -> str:
    """Return the content of the page below its title."""
    parts = [*_introduction(document["info"]["description"]), *_contents(document)]
    for tag in document["tags"]:
        parts.append(f"<h2>{escape(tag['name'])}</h2>")
        for path, method, operation in _operations(document, tag["name"]):
            parts += _operation(path, method, operation)
    parts.append("<h2>Shapes</h2>")
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += [f'<h3 id="shape-{name}">{name}</h3>', *_shape(schema)]
    return "\n".join(parts)


def _introduction(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("- "):
            lines = (line.removeprefix("- ") for line in paragraph.splitlines())
            yield "<ul>" + "".join(f"<li>{_marked(line)}</li>" for line in lines) + "</ul>"
        else:
            yield f"<p>{_marked(paragraph)}</p>"


def _operations(
    document: Mapping[str, Any], tag: str
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item and tag in item[method]["tags"]:
                yield path, method, item[method]


def _contents(document: Mapping[str, Any]) -> Iterator[str]:
    yield "<nav>"
    for tag in document["tags"]:
        links = (
            f'<li><a href="#{one["operationId"]}"><code>{method.upper()} {escape(path)}</code></a> '
            f"{_marked(one['summary'])}</li>"
            for path, method, one in _operations(document, tag["name"])
        )
        yield f"<h2>{escape(tag['name'])}</h2><ul>{''.join(links)}</ul>"
    yield "</nav>"


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    heading = f"<code>{method.upper()} {escape(path)}</code>"
    yield f'<h3 id="{operation["operationId"]}">{heading}</h3>'
    yield f"<p><strong>{_marked(operation['summary'])}.</strong> "
    yield _marked(operation.get("description", ""))
    if "security" in operation:
        yield " Needs no key."
    yield "</p>"
    if "parameters" in operation:
        rows = (
            (
                f"<code>{each['name']}</code>",
                each["in"],
                _type(each["schema"]),
                _marked(each.get("description", "")),
            )
            for each in operation["parameters"]
        )
        yield from _table(("parameter", "in", "type", "meaning"), rows)
    if "requestBody" in operation:
        for media, content in operation["requestBody"]["content"].items():
            yield f"<p>Body, as <code>{escape(media)}</code>: {_type(content['schema'])}</p>"
            if "properties" in content["schema"]:
                yield from _shape(content["schema"])
    yield from _answers(operation["responses"])


def _answers(answers: Mapping[str, Any]) -> Iterator[str]:
    rows = (
        (f"<code>{status}</code>", _marked(answer["description"]), _bodies(answer))
        for status, answer in answers.items()
    )
    yield from _table(("status", "meaning", "body"), rows)


def _bodies(answer: Mapping[str, Any]) -> str:
    found = [
        f"{escape(media)}: {_type(content['schema'])}" if _named(content["schema"]) else media
        for media, content in answer.get("content", {}).items()
    ]
    return "<br>".join(found)


def _named(schema: Schema) -> bool:
    return "$ref" in schema or any("$ref" in each for each in schema.get("anyOf", ()))


def _shape(schema: Schema) -> Iterator[str]:
    """Yield a table of an object's fields."""
    if "description" in schema:
        yield f"<p>{_marked(schema['description'])}</p>"
    required = schema.get("required", ())
    rows = (
        (
            f"<code>{name}</code>",
            _type(one),
            "yes" if name in required else "",
            _marked(one.get("description", "")),
        )
        for name, one in schema.get("properties", {}).items()
    )
    yield from _table(("field", "type", "required", "meaning"), rows)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield "<table><thead><tr>" + "".join(f"<th>{each}</th>" for each in head) + "</tr></thead>"
    yield "<tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
    yield "</tbody></table>"


def _type(schema: Schema) -> str:
    """Describe in words what a value may be."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#shape-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        words = ", ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
        return words + _default(schema)
    limits = [text.format(schema[name]) for name, text in _LIMITS.items() if name in schema]
    words = _kind(schema) + "".join(f", {limit}" for limit in limits)
    return words + _default(schema)


def _kind(schema: Schema) -> str:
    kind: str = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema['items'])}" if "items" in schema else "list"
    if kind == "object" and "additionalProperties" in schema and schema["additionalProperties"]:
        return f"object of {_type(schema['additionalProperties'])}"
    return "file" if "contentMediaType" in schema else escape(kind)


def _default(schema: Schema) -> str:
    default = schema.get("default")
    return "" if default is None else f"; by default <code>{escape(str(default))}</code>"


def _marked(text: str) -> str:
    """Return the text as HTML, with backticks as code and addresses as links."""

    def mark(found: re.Match[str]) -> str:
        if found[1] is not None:
            return f"<code>{escape(found[1])}</code>"
        return f'<a href="{escape(found[2])}">{escape(found[2])}</a>'

    parts, at = [], 0
    for found in _MARKED.finditer(text):
        parts += [escape(text[at : found.start()]), mark(found)]
        at = found.end()
    return "".join([*parts, escape(text[at:])])
