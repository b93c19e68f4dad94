"""Other APIs' pronunciation dictionaries: routes over the server's stored lexicons.

A dictionary's id is the lexicon's name, made from its title; its versions are the lexicon's. Bodies
are read on the event loop; they and all files are processed in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.fields import WrongField
from realtime_tts.lexicons.errors import LexiconError, NoLexicons, Overtaken, UnknownLexicon
from realtime_tts.lexicons.file import Entry, checked
from realtime_tts.lexicons.folder import LexiconFolder, Version
from realtime_tts.lexicons.request import MAX_BODY_BYTES
from realtime_tts.server.endpoints import BodyTooLarge, read_body
from realtime_tts.server.front import Front

NOT_FOUND = "pronunciation_dictionary_not_found"
_NO_DICTIONARIES = "this server keeps no dictionaries: start it with --voices-dir FOLDER"
_LONGEST_NAME = 48  # leaves room for a suffix that makes it unique
_TRIES = 50  # while other clients store first

Answer = Callable[[LexiconFolder, Request, bytes], Any]
"""Returns what the body of the answer must hold, or a response; runs in a thread."""

Change = Callable[[Version], tuple[Sequence[Entry], str | None]]
"""Returns the entries and the title of the next version, made of this one."""


def dictionary_route(api: Api, front: Front, path: str, method: str, answer: Answer) -> Route:
    """Return a route that `answer` serves. Errors have the API's own form."""

    async def serve(request: Request) -> Any:
        try:
            if front.lexicons is None:
                raise NoLexicons(_NO_DICTIONARIES)
            body = await read_body(request, MAX_BODY_BYTES)
            return await asyncio.to_thread(answer, front.lexicons.folder, request, body)
        except UnknownLexicon as error:
            return Refusal(error.status, NOT_FOUND, str(error))
        except LexiconError as error:
            return Refusal(error.status, error.code, str(error))
        except BodyTooLarge as error:
            return Refusal(413, "too_large", str(error))

    return Route(path, api.endpoint(serve), methods=[method])


def named(front: Front, refs: Sequence[str], field: str) -> list[str]:
    """Return the lexicons that a request for speech names. Raises WrongField for an unknown one."""
    try:
        if refs and front.lexicons is None:
            raise NoLexicons(_NO_DICTIONARIES)
        return front.lexicons.pinned(refs) if front.lexicons is not None else []
    except LexiconError as error:
        raise WrongField(f"`{field}`: {error}", field, NOT_FOUND, 404) from None


def made(folder: LexiconFolder, title: str, entries: Sequence[Entry]) -> Version:
    """Store a new lexicon with this title, under a name made from it that no other has."""
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_LONGEST_NAME] or "dictionary"
    checked_entries = checked(entries)

    def store() -> Version:
        name = f"{plain}-{secrets.token_hex(4)}" if plain in folder.names() else plain
        return folder.put(name, checked_entries, title, after=0)

    return _stored(store)


def changed(folder: LexiconFolder, ref: str, change: Change) -> Version:
    """Store the next version of a lexicon, made of the version `ref`; again of a newer one if
    another client has stored that meanwhile."""

    def store() -> Version:
        newest = folder.get(ref.partition("@")[0])
        entries, title = change(folder.get(ref))
        return folder.put(newest.name, checked(entries), title, after=newest.number)

    return _stored(store)


def _stored(store: Callable[[], Version]) -> Version:
    for _ in range(_TRIES - 1):
        with contextlib.suppress(Overtaken):
            return store()
    return store()


def name_in(fields: dict[str, Any]) -> str:
    """Return the field `name`, a text of 1 to 256 characters. Raises WrongField."""
    value = fields.get("name")
    if not isinstance(value, str) or not 0 < len(value) <= 256:
        raise WrongField("`name` must be a string of 1 to 256 characters", "name")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise WrongField("`name` must be a string, and holds half of a surrogate pair", "name")
    return value


def items_in(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return a field that must be a list of objects. Raises WrongField."""
    value = fields.get(name)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise WrongField(f"`{name}` must be an array of objects", name)
    return value


def entry_of(item: dict[str, Any], word: str, *, case_sensitive: bool) -> Entry:
    """Return the entry of an item whose fields `word` and "alias" hold it. Raises WrongField."""
    for name in (word, "alias"):
        if not isinstance(item.get(name), str):
            raise WrongField(f"`{name}` must be a string, found {item.get(name)!r:.40}", name)
    sensitive = item.get("case_sensitive")
    if sensitive is not None and not isinstance(sensitive, bool):
        raise WrongField("`case_sensitive` must be true or false", "case_sensitive")
    return Entry(item[word], item["alias"], case_sensitive if sensitive is None else sensitive)
