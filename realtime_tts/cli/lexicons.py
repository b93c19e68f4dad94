"""`realtime-tts lexicons add|list|show|remove`: the pronunciations that a server keeps."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from realtime_tts.cli.counted import counted
from realtime_tts.cli.failures import ExitStatus
from realtime_tts.cli.session_arguments import add_server_arguments
from realtime_tts.client.lexicons import LexiconClient
from realtime_tts.errors import ConfigError

_EXAMPLES = """\
examples:
  realtime-tts lexicons add brands brands.pls             a PLS file, as other tools write it
  realtime-tts lexicons add brands brands.json            {"SQL": "sequel", "Nguyen": "win"}
  realtime-tts lexicons add brands brands.txt             a line for each: SQL=sequel
  realtime-tts lexicons list
  realtime-tts lexicons remove brands@1                   a version; without @1 all of them
  realtime-tts say --lexicons brands "Ask Nguyen about SQL."
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    what = parser.add_subparsers(metavar="WHAT", required=True, dest="what")
    add = what.add_parser("add", help="store a file as a lexicon, or as its next version")
    add.add_argument("name", help="1 to 64 characters out of a-z, 0-9, _ and -")
    add.add_argument("file", type=Path, help="PLS (.pls, .xml), JSON, or lines of WORD=SAID")
    listed = what.add_parser("list", help="what the server has")
    show = what.add_parser("show", help="a lexicon's words, as JSON or PLS")
    show.add_argument("ref", metavar="name[@version]")
    show.add_argument("--pls", action="store_true", help="as a PLS file")
    remove = what.add_parser("remove", help="delete a lexicon, or one version of it")
    remove.add_argument("ref", metavar="name[@version]")
    for each in (add, listed, show, remove):
        add_server_arguments(each)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked. Returns the exit status."""
    client = LexiconClient(arguments.url, api_key=arguments.api_key, tls_ca=arguments.tls_ca)
    console = Console(highlight=False, markup=False)
    match arguments.what:
        case "add":
            stored = _stored(client, arguments.name, arguments.file)
            console.print(f"stored {stored['ref']}: {counted(stored['count'], 'entry', 'entries')}")
        case "list":
            console.print(_table(client.lexicons()))
        case "show" if arguments.pls:
            print(client.pls(arguments.ref).decode(), end="")
        case "show":
            print(json.dumps(client.get(arguments.ref), indent=2, ensure_ascii=False))
        case _:
            client.delete(arguments.ref)
            console.print(f"deleted {arguments.ref}")
    return ExitStatus.OK


def _stored(client: LexiconClient, name: str, path: Path) -> dict[str, Any]:
    """Store a file, which is read as its suffix says. Raises ConfigError if it cannot be read."""
    try:
        data = path.read_bytes()
        if path.suffix.lower() in (".pls", ".xml"):
            return client.put_pls(name, data)
        text = data.decode("utf-8-sig")
        found = json.loads(text) if path.suffix.lower() == ".json" else _words(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path} cannot be read: it is nested too deep for a lexicon") from None
    if isinstance(found, dict) and "entries" in found and not isinstance(found["entries"], str):
        return client.put(name, found["entries"], title=found.get("title"))
    return client.put(name, found)


def _words(text: str) -> dict[str, str]:
    words: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        word, found, said = (part.strip() for part in line.partition("="))
        if line.strip() and not line.startswith("#"):
            if not (word and found and said):
                raise ValueError(f"line {number} must be WORD=SAID, as in SQL=sequel")
            words.setdefault(word, said)
    return words


def _table(lexicons: list[dict[str, Any]]) -> Table:
    table = Table(box=None)
    for name in ("name", "newest", "entries", "created", "versions", "title"):
        table.add_column(name, justify="right" if name == "entries" else "left")
    for each in lexicons:
        versions = each["versions"]
        shown = f"{versions[0]} to {versions[-1]}" if len(versions) > 1 else str(versions[0])
        table.add_row(
            each["id"], each["ref"], str(each["count"]), each["created"], shown, each["title"]
        )
    return table
