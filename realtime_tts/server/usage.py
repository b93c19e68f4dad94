"""`GET /v1/usage`: what a customer's key has used, by day; the operator sees all keys."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypedDict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from realtime_tts.logs import event
from realtime_tts.server.auth import account_of
from realtime_tts.server.denials import error_response
from realtime_tts.server.front import Front

if TYPE_CHECKING:
    from realtime_tts.access.usage import Usage

log = logging.getLogger(__name__)

USAGE_PATH = "/v1/usage"
DAYS, MOST_DAYS = 31, 366
_PATIENCE_SECONDS = 5.0


class Counts(TypedDict):
    """What was spoken and refused. `characters` are those of the text."""

    turns: int
    characters: int
    audio_seconds: float
    refusals: int


class DayOfUsage(Counts):
    """The counts of one day, in UTC."""

    day: str


class KeyUsage(Counts):
    """What one key has used: sums over the days asked for, and each day."""

    key: str
    name: str | None
    days: list[DayOfUsage]


class AllUsage(TypedDict):
    """The usage of every key, for an `admin` key and the server's own."""

    keys: list[KeyUsage]


def usage_routes(front: Front) -> list[BaseRoute]:
    """Return the route, if there are keys whose usage is recorded."""
    if front.access is None:
        return []
    # Its own, since those of the event loop read voices and lexicons: a database may hang.
    thread = ThreadPoolExecutor(1, "usage-reader")
    return [Route(USAGE_PATH, partial(_usage, front.access.usage, thread), methods=["GET"])]


async def _usage(usage: Usage, thread: ThreadPoolExecutor, request: Request) -> Response:
    asked = request.query_params.get("days", str(DAYS))
    count = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 0
    if not 1 <= count <= MOST_DAYS:
        message = f"`days` must be a number from 1 to {MOST_DAYS}, found {asked[:40]!r}"
        return error_response(400, "bad_request", message, fatal=False)
    account = account_of(request.scope)
    only = None if account.is_admin else account.id  # now: the key may change meanwhile, or end
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            reading = partial(_rows, usage, only, count)
            rows = await asyncio.get_running_loop().run_in_executor(thread, reading)
    except OSError as error:  # or a TimeoutError, which says nothing
        event(log, logging.ERROR, "usage.not_read", why=str(error) or "the database hangs")
        return error_response(503, "not_ready", "the record of usage cannot be read now", 1)
    if only is not None:
        return JSONResponse(rows[0] if rows else _of(only, []))
    answer: AllUsage = {"keys": rows}
    return JSONResponse(answer)


def _rows(usage: Usage, only: str | None, days: int) -> list[KeyUsage]:
    """Return the usage of the key with the id `only`, or of all keys for None."""
    found = sorted(usage.days(only, days), key=itemgetter("key_id", "day"))
    return [_of(id, list(rows)) for id, rows in groupby(found, key=itemgetter("key_id"))]


def _of(key_id: str, rows: list[dict[str, Any]]) -> KeyUsage:
    """Return the usage of one key, with its sums and its days."""
    days: list[DayOfUsage] = [{"day": row["day"].isoformat(), **_sums([row])} for row in rows]
    name = rows[-1]["name"] if rows else None
    return {"key": key_id, "name": name, **_sums(rows), "days": days}


def _sums(rows: list[dict[str, Any]]) -> Counts:
    return {
        "turns": sum(row["turns"] for row in rows),
        "characters": sum(row["characters"] for row in rows),
        "audio_seconds": round(sum(row["audio_seconds"] for row in rows), 3),
        "refusals": sum(row["refusals"] for row in rows),
    }
