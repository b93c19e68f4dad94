"""`realtime-tts keys create|list|rotate|revoke`: the keys of a server's customers."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from pathlib import Path

from msgspec import structs
from rich.console import Console
from rich.table import Table

from realtime_tts.access.key import Key, KeyLimits, digest_of, new_id, new_secret
from realtime_tts.access.key_file import KeyFile
from realtime_tts.cli.failures import ExitStatus
from realtime_tts.config import is_origin
from realtime_tts.errors import ConfigError

_EXAMPLES = """\
examples:
  realtime-tts keys create acme --keys keys.json --turns 20 --chars-per-day 1000000
  realtime-tts keys create kiosk --keys keys.json --expires 90d --origin https://kiosk.example.com
  realtime-tts keys list --keys keys.json
  realtime-tts keys rotate acme --keys keys.json          another secret, the old one ends at once
  realtime-tts keys revoke acme --keys keys.json          its open sockets are closed with 4401
  realtime-tts serve --keys keys.json
"""

_SECONDS = {"m": 60, "h": 3_600, "d": 86_400}
_LIMITS = {
    "sessions": "sockets, and streams of other APIs, that may be open at once",
    "turns": "turns that may be spoken at once",
    "turns_per_minute": "turns that may begin in a minute",
    "chars_per_minute": "characters that may come in a minute",
    "chars_per_day": "characters that may come in a day",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    what = parser.add_subparsers(metavar="WHAT", required=True, dest="what")
    create = what.add_parser("create", help="make a key, and print its secret: it is shown once")
    create.add_argument("name", help="whose it is; 1 to 64 characters")
    _add_rights(create)
    listed = what.add_parser("list", help="the keys there are, without their secrets")
    rotate = what.add_parser("rotate", help="give a key another secret, and print it")
    revoke = what.add_parser("revoke", help="delete a key")
    for each in (rotate, revoke):
        each.add_argument("key", help="its name or its id")
    for each in (create, listed, rotate, revoke):
        each.add_argument("--keys", type=Path, required=True, metavar="FILE", help="where they are")


def _add_rights(create: argparse.ArgumentParser) -> None:
    for name, meaning in _LIMITS.items():
        flag = "--" + name.replace("_", "-")
        create.add_argument(flag, type=int, metavar="N", help=f"{meaning} (default: no limit)")
    create.add_argument("--expires", metavar="TIME", help="in 30m, 12h or 90d, or a date")
    create.add_argument(
        "--origin",
        action="append",
        metavar="ORIGIN",
        help="of the only pages that may use it, which the server must allow, too; repeatable",
    )
    create.add_argument(
        "--voice",
        action="append",
        metavar="PATTERN",
        help="it may speak with voices that fit, such as acme-*; repeatable (default: all)",
    )
    create.add_argument(
        "--register",
        action="append",
        metavar="PATTERN",
        help="it may register and delete voices that fit; repeatable (default: none)",
    )
    create.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="of a full server, beside the shares of others (default: 1)",
    )
    create.add_argument(
        "--admin",
        action="store_true",
        help="it may see all usage, metrics and load, and change lexicons",
    )


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked. Returns the exit status."""
    file = KeyFile(arguments.keys)
    messages = Console(stderr=True, highlight=False, markup=False)
    if arguments.what != "create" and not file.path.exists():
        raise ConfigError(f"there is no file {file.path}: `realtime-tts keys create` writes it")
    match arguments.what:
        case "create":
            key, secret = _made(arguments)
            file.change(lambda keys: _add(keys, key))
            messages.print(f"created {key.name} ({key.id}); the key is not shown again:")
            print(secret)
        case "list":
            Console(highlight=False, markup=False).print(_table(list(file.read().values())))
        case "rotate":
            print(_rotated(file, arguments.key))
        case _:
            file.change(lambda keys: _revoke(keys, arguments.key))
            messages.print(f"revoked {arguments.key}")
    return ExitStatus.OK


def _made(arguments: argparse.Namespace) -> tuple[Key, str]:
    """Return a new key and its secret. Raises ConfigError."""
    name = arguments.name
    if not (1 <= len(name) <= 64 and name.isprintable()):
        raise ConfigError(f"a key's name has 1 to 64 characters that can be printed, got {name!r}")
    limits = {name: getattr(arguments, name) for name in _LIMITS}
    for limit, most in limits.items():
        if most is not None and most < 1:
            flag = "--" + limit.replace("_", "-")
            raise ConfigError(f"{flag} must be at least 1, got {most}; to end a key, revoke it")
    if not 0 < arguments.share < inf:  # JSON has no infinity
        raise ConfigError(f"--share must be positive and finite, got {arguments.share:g}")
    for origin in arguments.origin or ():
        if not is_origin(origin):
            raise ConfigError(
                "--origin looks like https://example.com or http://localhost:3000 (no path); "
                f"got {origin!r}. Leave it out for every page that the server allows"
            )
    key_id, now = new_id(), round(time.time(), 3)
    secret = new_secret(key_id)
    key = Key(
        id=key_id,
        name=name,
        digest=digest_of(secret.encode()),
        created=now,
        expires=None if arguments.expires is None else _expires(arguments.expires, now),
        origins=tuple(arguments.origin or ()),
        voices=tuple(arguments.voice or ("*",)),
        register=tuple(arguments.register or ()),
        share=arguments.share,
        admin=arguments.admin,
        limits=KeyLimits(**limits),
    )
    return key, secret


def _expires(text: str, now: float) -> float:
    """Return when a key expires that is made now. Raises ConfigError."""
    when = _when(text, now)
    if when <= now:
        raise ConfigError(f"--expires {text} is over: nobody could use the key")
    return when


def _when(text: str, now: float) -> float:
    """Return `90d` from now on, or the beginning of a day in UTC, in seconds since 1970. Raises
    ConfigError."""
    if found := re.fullmatch(r"(\d{1,6})([mhd])", text):
        return round(now + int(found[1]) * _SECONDS[found[2]], 3)
    try:
        when = datetime.fromisoformat(text)
        when = when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"--expires must be a time such as 12h or 90d, or a date such as 2027-01-31, "
            f"got {text!r}"
        ) from None
    return when.timestamp()


def _add(keys: dict[str, Key], key: Key) -> None:
    if any(other.name == key.name for other in keys.values()):
        raise ConfigError(f"there is a key named {key.name!r} already: rotate or revoke it")
    keys[key.id] = key


def _find(keys: dict[str, Key], asked: str) -> Key:
    for key in keys.values():
        if asked in (key.id, key.name):
            return key
    raise ConfigError(f"there is no key {asked!r}; `realtime-tts keys list` has those there are")


def _rotated(file: KeyFile, asked: str) -> str:
    secrets: list[str] = []

    def change(keys: dict[str, Key]) -> None:
        key = _find(keys, asked)
        secrets.append(new_secret(key.id))
        digest = digest_of(secrets[0].encode())
        keys[key.id] = structs.replace(key, digest=digest)

    file.change(change)
    return secrets[0]


def _revoke(keys: dict[str, Key], asked: str) -> None:
    del keys[_find(keys, asked).id]


def _table(keys: list[Key]) -> Table:
    """Return the table. A key's details have a line each: as columns they would not fit."""
    table = Table(box=None)
    for name in ("id", "name", "details"):
        table.add_column(name, no_wrap=name == "id", overflow="fold")
    for key in keys:
        name = f"{key.name} (admin)" if key.admin else key.name
        table.add_row(key.id, name, "\n".join(_details(key)))
    return table


def _details(key: Key) -> Iterator[str]:
    yield f"created: {_day(key.created)}"
    if key.expires is not None:
        over = " (over)" if key.expired(time.time()) else ""
        yield f"expires: {_day(key.expires)}{over}"
    for limit in _LIMITS:
        if (most := getattr(key.limits, limit)) is not None:
            yield f"{limit}: {most}"
    yield f"voices: {', '.join(key.voices)}"
    if key.register:
        yield f"register: {', '.join(key.register)}"
    yield f"share: {key.share:g}"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
