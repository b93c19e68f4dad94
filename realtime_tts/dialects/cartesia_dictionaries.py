"""`/pronunciation-dicts`, as Cartesia's clients make and read them."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from realtime_tts.dialects.api import page_of
from realtime_tts.dialects.cartesia_messages import API
from realtime_tts.dialects.dictionaries import (
    changed,
    dictionary_route,
    entry_of,
    items_in,
    made,
    name_in,
)
from realtime_tts.lexicons.errors import LexiconError
from realtime_tts.lexicons.file import Entry
from realtime_tts.lexicons.folder import LexiconFolder, Version
from realtime_tts.lexicons.pls import NO_PHONEMES
from realtime_tts.server.endpoints import object_in
from realtime_tts.server.front import Front

DICTIONARIES_PATH = "/pronunciation-dicts"
_PHONEMES = "<<"
"""How Cartesia's custom phonemes begin: `<<k|æ|t>>`."""


def dictionary_routes(front: Front) -> list[Route]:
    """Return the routes of dictionaries, with and without the slash at the end."""
    route, one = partial(dictionary_route, API, front), DICTIONARIES_PATH + "/{id}"
    both = (DICTIONARIES_PATH, DICTIONARIES_PATH + "/")
    return [
        *(route(path, "GET", _list) for path in both),
        *(route(path, "POST", _create) for path in both),
        route(one, "GET", _show),
        route(one, "PATCH", _update),
        route(one, "DELETE", _delete),
    ]


def _create(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    fields = object_in(body)
    return _described(folder, made(folder, name_in(fields), _entries(fields)))


def _update(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    """Store the next version of a dictionary, with other items or another name."""
    fields = object_in(body)
    items = _entries(fields) if "items" in fields else None
    name = name_in(fields) if "name" in fields else None

    def change(old: Version) -> tuple[list[Entry], str | None]:
        entries = folder.entries(old) if items is None else items
        return entries, folder.header(old).title if name is None else name

    return _described(folder, changed(folder, request.path_params["id"], change))


def _list(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    page, has_more = page_of(
        folder.names(), request.query_params, "limit", "starting_after", "ending_before"
    )
    found = folder.described(page, _described)
    return {"data": found, "has_more": has_more, "next_page": page[-1] if has_more else None}


def _show(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    return _described(folder, folder.get(request.path_params["id"]))


def _delete(folder: LexiconFolder, request: Request, body: bytes) -> Response:
    folder.delete(request.path_params["id"])
    return Response(status_code=204)


def _entries(fields: dict[str, Any]) -> list[Entry]:
    entries = [entry_of(item, "text", case_sensitive=False) for item in items_in(fields, "items")]
    for entry in entries:
        if entry.say.startswith(_PHONEMES):
            raise LexiconError(f"the alias of {entry.word[:40]!r}: {NO_PHONEMES}")
    return entries


def _described(folder: LexiconFolder, version: Version) -> dict[str, Any]:
    header = folder.header(version)
    items = [
        {"text": entry.word, "alias": entry.say, "case_sensitive": entry.case_sensitive}
        for entry in folder.entries(version)
    ]
    return {
        "id": version.name,
        "name": header.title or version.name,
        "created_at": header.created,
        "items": items,
        "owner_id": "",
        "pinned": False,
    }
