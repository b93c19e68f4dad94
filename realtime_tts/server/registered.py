"""Registered: what the front knows of a connection, whatever its API."""

from __future__ import annotations

from typing import Protocol

from realtime_tts.access.account import Account
from realtime_tts.protocol.effects import TurnFailure


class Registered(Protocol):
    """A connection of any API: it counts, and is drained and ended with the server."""

    address: object
    """The address it comes from; the same object for all connections from there."""

    @property
    def account(self) -> Account:
        """The connection's account; `FREE` until it has shown its key."""

    @property
    def sessions(self) -> int:
        """Sessions that it counts for: one, or one for each context; none while unauthenticated."""

    @property
    def open_turns(self) -> int:
        """Turns that take text or speak."""

    @property
    def live_turns(self) -> int:
        """Turns that have text and are not done."""

    def drain(self) -> None:
        """Begin nothing new, and close when all turns are done. Idempotent."""

    def end(self, why: TurnFailure) -> None:
        """End what still runs, with a proper close."""

    def revoke(self, why: TurnFailure) -> None:
        """End it now, with a close that says that its key is no longer valid."""
