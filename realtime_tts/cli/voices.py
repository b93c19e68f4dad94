"""`realtime-tts voices`: what a server can speak with."""

from __future__ import annotations

import argparse
import asyncio
import json

import msgspec
from rich.console import Console
from rich.table import Table

from realtime_tts.cli.failures import ExitStatus
from realtime_tts.cli.session_arguments import add_server_arguments
from realtime_tts.client import RealtimeTTS
from realtime_tts.protocol.messages import Ready


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_arguments(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


def run(arguments: argparse.Namespace) -> int:
    ready = asyncio.run(_ready(arguments.url, arguments.api_key))
    if arguments.json:
        fields = msgspec.to_builtins(ready)
        shown = {name: fields[name] for name in ("model", "voices", "languages", "settings")}
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        Console().print(_table(ready))
    return ExitStatus.OK


async def _ready(url: str, api_key: str | None) -> Ready:
    async with RealtimeTTS(url, api_key=api_key) as tts:
        return tts.ready


def _table(ready: Ready) -> Table:
    table = Table(title=f"{ready.model} on {ready.server}", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    table.add_row("voices", ", ".join(ready.voices) or "none with a name")
    table.add_row("languages", ", ".join(ready.languages))
    table.add_row("default voice", ready.settings.voice or "the checkpoint's own")
    return table
