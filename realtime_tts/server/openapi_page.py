"""`/openapi.json`, and the same for people at `/docs`.

Both are made from what is in every copy of the source, once in a process, and say nothing about
this server: they need no key, as the demo page.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib import resources
from typing import Any

import msgspec
from starlette.routing import Route

from realtime_tts.server.openapi import JSON, document
from realtime_tts.server.openapi_dialects import ELSEWHERE
from realtime_tts.server.openapi_dialects import OPERATIONS as DIALECTS
from realtime_tts.server.openapi_html import html_page
from realtime_tts.server.openapi_native import DOCS_PATH, OPENAPI_PATH, STYLE_PATH
from realtime_tts.server.openapi_native import OPERATIONS as NATIVE
from realtime_tts.server.static import bytes_route, file_route


@functools.cache
def openapi() -> dict[str, Any]:
    """The document. Who gets it changes nothing in it."""
    return document((*DIALECTS, *NATIVE), ELSEWHERE)


@functools.cache
def _made() -> tuple[bytes, bytes]:
    page = html_page(openapi(), STYLE_PATH, OPENAPI_PATH)
    return msgspec.json.encode(openapi()), page.encode()


def reference_routes() -> Iterator[Route]:
    """The routes of the document, of the page, and of how that looks."""
    described, page = _made()
    yield bytes_route(OPENAPI_PATH, described, JSON)
    yield bytes_route(DOCS_PATH, page, "text/html")
    server = resources.files("realtime_tts.server")
    yield file_route(STYLE_PATH, server.joinpath("openapi.css"))
