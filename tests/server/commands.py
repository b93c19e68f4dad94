"""What the engine of a test's server was told to say. A token is a byte there."""

from __future__ import annotations

from typing import Any

from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import Append, Open


def utterances(commands: list[Any]) -> list[tuple[str, UtteranceSpec]]:
    """The text of each, and how it was to be spoken."""
    specs = {c.id: c.spec for c in commands if isinstance(c, Open)}
    texts = dict.fromkeys(specs, b"")
    for command in commands:
        if isinstance(command, Append):
            texts[command.id] += bytes(command.ids)
    return [(texts[name].decode(), spec) for name, spec in specs.items()]


def said_since(commands: list[Any]) -> str:
    """All text that came since the last call, which `commands` then no longer have."""
    ids = [id for command in commands if isinstance(command, Append) for id in command.ids]
    commands.clear()
    return bytes(ids).decode()
