"""`realtime-tts voices`: lists what a server can speak with, or deletes a registered voice."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from realtime_tts.cli.failures import ExitStatus
from realtime_tts.cli.session_arguments import add_server_arguments
from realtime_tts.client import RealtimeTTS
from realtime_tts.client.voices import VoiceClient
from realtime_tts.protocol.messages import Ready


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_arguments(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--json", action="store_true", help="for programs")
    what.add_argument("--delete", metavar="NAME", help="delete this registered voice")


def run(arguments: argparse.Namespace) -> int:
    """List the voices, or delete one. Returns the exit status."""
    access = {"api_key": arguments.api_key, "tls_ca": arguments.tls_ca}
    client = VoiceClient(arguments.url, timeout=30.0, **access)
    if arguments.delete is not None:
        client.delete(arguments.delete)
        Console().print(f"deleted {arguments.delete}", highlight=False, markup=False)
        return ExitStatus.OK
    ready = asyncio.run(_ready(arguments.url, access))
    registered = [voice for voice in client.voices()["details"] if voice["kind"] == "registered"]
    if arguments.json:
        fields = msgspec.to_builtins(ready)
        shown = {name: fields[name] for name in ("model", "voices", "languages", "settings")}
        print(json.dumps(shown | {"registered": registered}, indent=2, ensure_ascii=False))
    else:
        Console().print(_table(ready, registered))
    return ExitStatus.OK


async def _ready(url: str, access: dict[str, Any]) -> Ready:
    async with RealtimeTTS(url, **access) as tts:
        return tts.ready


def _table(ready: Ready, registered: list[dict[str, Any]]) -> Table:
    table = Table(title=f"{ready.model} on {ready.server}", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    known = {voice["id"] for voice in registered}
    speakers = [name for name in ready.voices if name not in known]
    table.add_row("voices", ", ".join(speakers) or "none with a name")
    for number, voice in enumerate(registered):
        table.add_row("registered" if number == 0 else "", _described(voice))
    table.add_row("languages", ", ".join(ready.languages))
    table.add_row("default voice", ready.settings.voice or "the checkpoint's own")
    return table


def _described(voice: dict[str, Any]) -> str:
    how = "in context" if voice["in_context"] else "embedding"
    details = [voice["language"], how, voice["model"], voice["created"]]
    return f"{voice['id']} ({', '.join(filter(None, details))})"
