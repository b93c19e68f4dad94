"""`/v1/pronunciation-dictionaries`, as ElevenLabs' clients make and read them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from realtime_tts.dialects.dictionaries import (
    changed,
    dictionary_route,
    entry_of,
    items_in,
    made,
    name_in,
)
from realtime_tts.dialects.elevenlabs_messages import API
from realtime_tts.dialects.fields import WrongField
from realtime_tts.errors import RequestError
from realtime_tts.lexicons.errors import LexiconError
from realtime_tts.lexicons.file import Entry
from realtime_tts.lexicons.folder import LexiconFolder, Version
from realtime_tts.lexicons.pls import NO_PHONEMES, read_pls, write_pls
from realtime_tts.multipart import BadForm, read_form
from realtime_tts.server.endpoints import object_in
from realtime_tts.server.front import Front

DICTIONARIES_PATH = "/v1/pronunciation-dictionaries"


def dictionary_routes(front: Front) -> list[Route]:
    """Return the routes of dictionaries."""
    route, one = partial(dictionary_route, API, front), DICTIONARIES_PATH + "/{id}"
    return [
        route(DICTIONARIES_PATH, "GET", _list),
        route(DICTIONARIES_PATH + "/", "GET", _list),
        route(DICTIONARIES_PATH + "/add-from-file", "POST", _add_from_file),
        route(DICTIONARIES_PATH + "/add-from-rules", "POST", _add_from_rules),
        route(one, "GET", _show),
        route(one + "/set-rules", "POST", _set_rules),
        route(one + "/add-rules", "POST", _add_rules),
        route(one + "/remove-rules", "POST", _remove_rules),
        route(one + "/{version}/download", "GET", _download),
    ]


# Making.


def _add_from_rules(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    fields = object_in(body)
    return _made(folder, made(folder, name_in(fields), _entries(fields)))


def _add_from_file(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    """Store a form with a PLS file. Its words are case-sensitive, as in the original."""
    form = _form(body, request.headers.get("content-type", ""))
    if "file" not in form:
        raise WrongField("`file`, a PLS file, is missing", "file")
    title = name_in({name: value.decode(errors="replace") for name, value in form.items()})
    return _made(folder, made(folder, title, read_pls(form["file"], case_sensitive=True)))


def _set_rules(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    entries = _entries(object_in(body))
    return _changed(folder, request, lambda old: entries)


def _add_rules(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    """Add rules; each replaces the one for its word."""
    more = _entries(object_in(body))
    return _changed(folder, request, lambda old: [*more, *old])


def _remove_rules(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    gone = object_in(body).get("rule_strings")
    if not isinstance(gone, list):
        raise WrongField("`rule_strings` must be an array of strings", "rule_strings")
    return _changed(folder, request, lambda old: [one for one in old if one.word not in gone])


def _entries(fields: dict[str, Any]) -> list[Entry]:
    """Return the entries of rules, which are case-sensitive unless they say otherwise."""
    entries = []
    for rule in items_in(fields, "rules"):
        if rule.get("type", "alias") != "alias":
            raise LexiconError(f"the rule for {rule.get('string_to_replace')!r:.60}: {NO_PHONEMES}")
        if rule.get("word_boundaries") is False:
            raise LexiconError("`word_boundaries` must be true: whole words are replaced here")
        entries.append(entry_of(rule, "string_to_replace", case_sensitive=True))
    return entries


def _form(body: bytes, content_type: str) -> dict[str, bytes]:
    """Return the fields of a form. Raises RequestError."""
    fields: dict[str, bytes] = {}

    def put(name: str, value: bytes, is_file: bool) -> None:
        fields.setdefault(name, value)

    try:
        read_form(body, content_type, put)
    except BadForm as error:
        raise RequestError(str(error)) from None
    return fields


def _changed(
    folder: LexiconFolder, request: Request, change: Callable[[list[Entry]], list[Entry]]
) -> Any:
    """Store what `change` makes of the rules as the next version of the path's dictionary."""

    def changed_rules(old: Version) -> tuple[list[Entry], str | None]:
        return change(folder.entries(old)), folder.header(old).title

    version = changed(folder, request.path_params["id"], changed_rules)
    count = folder.header(version).entries
    return {"id": version.name, "version_id": str(version.number), "version_rules_num": count}


# Reading.


def _list(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    """Return all dictionaries, in one page."""
    found = folder.described(folder.names(), _described)
    return {"pronunciation_dictionaries": found, "next_cursor": None, "has_more": False}


def _show(folder: LexiconFolder, request: Request, body: bytes) -> Any:
    version = folder.get(request.path_params["id"])
    rules = [
        {
            "type": "alias",
            "string_to_replace": entry.word,
            "alias": entry.say,
            "case_sensitive": entry.case_sensitive,
            "word_boundaries": True,
        }
        for entry in folder.entries(version)
    ]
    return _described(folder, version) | {"rules": rules}


def _download(folder: LexiconFolder, request: Request, body: bytes) -> Response:
    asked = request.path_params
    version = folder.get(f"{asked['id']}@{asked['version']}")
    return Response(write_pls(folder.entries(version)), media_type="application/pls+xml")


def _described(folder: LexiconFolder, version: Version) -> dict[str, Any]:
    header = folder.header(version)
    return {
        "id": version.name,
        "name": header.title or version.name,
        "created_by": "",
        "creation_time_unix": int(datetime.fromisoformat(header.created).timestamp()),
        "latest_version_id": str(version.number),
        "latest_version_rules_num": header.entries,
        "description": None,
        "archived_time_unix": None,
        "permission_on_resource": "admin",
    }


def _made(folder: LexiconFolder, version: Version) -> dict[str, Any]:
    """Describe a version with the field names that the answer to its creation has."""
    described = _described(folder, version)
    renamed = {"latest_version_id": "version_id", "latest_version_rules_num": "version_rules_num"}
    return {renamed.get(name, name): value for name, value in described.items()}
