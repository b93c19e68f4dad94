"""Registered: what the front knows of a connection, over whatever API."""

from __future__ import annotations

from typing import Protocol

from realtime_tts.access.account import Account
from realtime_tts.protocol.effects import TurnFailure


class Registered(Protocol):
    """A connection, over whatever API: it counts, and is drained and ended with the server."""

    address: object
    """Where it comes from: the same object for all from there."""

    @property
    def account(self) -> Account:
        """Whose it is; `FREE` until it has shown its key."""

    @property
    def sessions(self) -> int:
        """How many it counts for: one, or as many as it runs contexts; none while it is
        unauthenticated."""

    @property
    def open_turns(self) -> int:
        """That take text or speak."""

    @property
    def live_turns(self) -> int:
        """Those of them that have text, and are not done."""

    def drain(self) -> None:
        """Begin nothing new, and close when what was begun is done. Idempotent."""

    def end(self, why: TurnFailure) -> None:
        """End what still runs, with a proper close."""

    def revoke(self, why: TurnFailure) -> None:
        """Its key is no longer valid: end it now, with a close that says so."""
