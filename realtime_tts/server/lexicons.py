"""`/v1/lexicons`: stored pronunciations, each a list of words and what to say for them.

Bodies are parsed in a thread.
"""

from __future__ import annotations

import asyncio
from typing import TypedDict

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from realtime_tts.lexicons.errors import LexiconError, LexiconTooLarge
from realtime_tts.lexicons.folder import LexiconFolder, Version, check_name
from realtime_tts.lexicons.pls import write_pls
from realtime_tts.lexicons.request import MAX_BODY_BYTES, parse
from realtime_tts.server.endpoints import Endpoint, Handler, answered, read_upload
from realtime_tts.server.front import Front
from realtime_tts.text.lexicon import Entry

LEXICONS_PATH = "/v1/lexicons"


class Lexicon(TypedDict):
    """A version of a lexicon. `ref` names it in a session; `created`: ISO 8601, UTC; `count`: its
    entries; `versions`: the numbers of all versions of the lexicon."""

    id: str
    version: int
    ref: str
    title: str | None
    created: str
    count: int
    versions: list[int]


class LexiconList(TypedDict):
    """The newest version of every lexicon."""

    lexicons: list[Lexicon]


class WholeLexicon(Lexicon):
    """A version with its entries."""

    entries: list[Entry]


def lexicon_routes() -> list[BaseRoute]:
    """Return the routes; the application's state has the front."""
    one = LEXICONS_PATH + "/{ref}"
    return [
        Route(LEXICONS_PATH, _answered(_list), methods=["GET"]),
        Route(one, _answered(_show), methods=["GET"]),
        Route(one, _answered(_put), methods=["PUT"]),
        Route(one, _answered(_delete), methods=["DELETE"]),
    ]


def _answered(handler: Handler[LexiconFolder]) -> Endpoint:
    """Return `handler` as an endpoint, which is called with the folder of lexicons."""

    async def with_folder(front: Front, request: Request) -> Response:
        return await handler(front.stored_lexicons().folder, request)

    return answered("lexicons", with_folder)


async def _list(folder: LexiconFolder, request: Request) -> Response:
    def found() -> list[Lexicon]:
        return folder.described(folder.names(), _described)

    answer: LexiconList = {"lexicons": await asyncio.to_thread(found)}
    return JSONResponse(answer)


async def _show(folder: LexiconFolder, request: Request) -> Response:
    """Return one version with its entries, as JSON or with `?format=pls`."""
    as_pls = request.query_params.get("format", "json")
    if as_pls not in ("json", "pls"):
        raise LexiconError(f"`format` must be json or pls, found {as_pls[:40]!r}")

    def found() -> Response:
        version = folder.get(request.path_params["ref"])
        entries = folder.entries(version)
        if as_pls == "pls":
            return Response(write_pls(entries), media_type="application/pls+xml")
        shown: WholeLexicon = {**_described(folder, version), "entries": entries}
        return Response(msgspec.json.encode(shown), media_type="application/json")

    return await asyncio.to_thread(found)


async def _put(folder: LexiconFolder, request: Request) -> Response:
    name = check_name(request.path_params["ref"])
    body = b"".join(await read_upload(request, MAX_BODY_BYTES, _too_large))
    content_type = request.headers.get("content-type", "")

    def store() -> Lexicon:
        asked = parse(body, content_type)
        return _described(folder, folder.put(name, asked.entries, asked.title))

    stored = await asyncio.to_thread(store)
    location = {"location": f"{LEXICONS_PATH}/{stored['ref']}"}
    return JSONResponse(stored, status_code=201, headers=location)


async def _delete(folder: LexiconFolder, request: Request) -> Response:
    await asyncio.to_thread(folder.delete, request.path_params["ref"])
    return Response(status_code=204)


def _too_large(found: str) -> LexiconTooLarge:
    return LexiconTooLarge(f"a lexicon may have {MAX_BODY_BYTES} bytes, found {found}")


def _described(folder: LexiconFolder, version: Version) -> Lexicon:
    """Return the description of a version."""
    header = folder.header(version)
    return {
        "id": version.name,
        "version": version.number,
        "ref": version.ref,
        "title": header.title,
        "created": header.created,
        "count": header.entries,
        "versions": [each.number for each in folder.versions(version.name)],
    }
