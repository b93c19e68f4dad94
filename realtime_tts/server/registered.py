"""Registered: what the front knows of a connection, whatever its API."""

from __future__ import annotations

from typing import Protocol

from realtime_tts.access.account import Holder
from realtime_tts.protocol.effects import TurnFailure


class Registered(Holder, Protocol):
    """A connection of any API: it counts, and is drained and ended with the server."""

    address: object
    """The address it comes from; the same object for all connections from there."""

    @property
    def open_turns(self) -> int:
        """Turns that take text or speak."""

    def drain(self) -> None:
        """Begin nothing new, and close when all turns are done. Idempotent."""

    def end(self, why: TurnFailure) -> None:
        """End what still runs, with a proper close."""

    def revoke(self, why: TurnFailure) -> None:
        """End it now, with a close that says that its key is no longer valid."""
