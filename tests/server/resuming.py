"""A client of the native protocol whose sockets are lost, and that goes on with its turn."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.server.talking import Talker

Connect = Callable[[], AbstractAsyncContextManager[Talker]]
Action = dict[str, Any]
"""A message of the turn, without its id."""


def whole(text: str, size: int = 0) -> list[Action]:
    """The messages for a text, in pieces of so many characters."""
    size = size or len(text)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    *first, last = ({"type": "text", "text": piece} for piece in pieces)
    return [*first, {**last, "end": True}]


@dataclass
class Kept:
    """What a client keeps of a turn: PROTOCOL.md, `turn.state`."""

    id: str
    samples: int = 0
    text_chars: int = 0
    part: str = ""
    state: str = ""
    codes: list[str] = field(default_factory=list)
    audio: bytearray = field(default_factory=bytearray)
    words: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    """All but states and words."""
    packets: int = 0
    next: dict[str, Any] | None = None
    told: list[tuple[int, int]] = field(default_factory=list)
    """Samples, and characters that were spoken by then."""

    def take(self, message: Any) -> None:
        if isinstance(message, bytes):
            self.audio += message
            self.packets += 1
            if self.next is not None:
                self.take_state(self.next)
                self.next = None
        elif message["type"] == "turn.state":
            self.next = message
        elif message["type"] == "turn.words":
            self.words += message["words"]
        else:
            self.messages.append(message)

    def take_state(self, state: dict[str, Any]) -> None:
        self.samples, self.text_chars = state["samples"], state["text_chars"]
        self.told.append((self.samples, self.text_chars))
        self.state = state["state"]
        if "part" in state:
            self.part, self.codes = state["part"], []
        if "codes" in state:
            self.codes.append(state["codes"])

    def resume(self) -> list[dict[str, Any]]:
        """The messages that go before the text."""
        if not self.state:
            return []
        return [
            {"type": "turn.codes", "turn_id": self.id, "codes": self.codes},
            {
                "type": "turn.resume",
                "turn_id": self.id,
                "samples": self.samples,
                "text_chars": self.text_chars,
                "words_chars": sum(len(word["text"]) for word in self.words),
                "part": self.part,
                "state": self.state,
            },
        ]

    @property
    def done(self) -> dict[str, Any] | None:
        last = self.messages[-1] if self.messages else None
        return last if last is not None and last["type"] == "turn.done" else None

    @property
    def said(self) -> str:
        return "".join(word["text"] for word in self.words)


async def spoken(
    connect: Connect, actions: Sequence[Action], lost_after: Sequence[int] = (), id: str = "a"
) -> Kept:
    """The turn, whose socket is lost after each of these numbers of packets, counted over all."""
    kept = Kept(id)
    for limit in [*lost_after, None]:
        kept.next = None
        async with connect() as talker:
            for message in [*kept.resume(), *({"turn_id": id, **one} for one in actions)]:
                await talker.socket.send(json.dumps(message))
            with contextlib.suppress(StopAsyncIteration):
                await hear(talker, kept, limit)
        if kept.done is not None:
            break
    return kept


async def hear(talker: Talker, kept: Kept, limit: int | None, *, leave: bool = True) -> None:
    """Until the turn is done, or so many packets came: then the socket is gone."""
    while kept.done is None:
        if limit is not None and kept.packets >= limit:
            if leave:
                talker.socket.transport.abort()
            return
        kept.take(await talker.next())
