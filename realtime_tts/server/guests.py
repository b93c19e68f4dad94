"""Guests of the front: sockets of other APIs, which count, are drained and are ended with it."""

from __future__ import annotations

from typing import Protocol


class Guest(Protocol):
    """A socket of another API: it opens streams, and is drained and ended with the server."""

    @property
    def places(self) -> int:
        """How many sessions it counts for: one, or as many as it runs contexts; none before it has
        shown its key."""

    @property
    def open_turns(self) -> int:
        """Contexts that take text or speak."""

    def drain(self) -> None:
        """Begin nothing new, and close when what was begun is done. Idempotent."""

    def end(self) -> None:
        """End what still runs, with a proper close."""


class Guests:
    """All that there are now."""

    def __init__(self) -> None:
        self._guests: set[Guest] = set()

    def add(self, guest: Guest) -> None:
        self._guests.add(guest)

    def discard(self, guest: Guest) -> None:
        self._guests.discard(guest)

    @property
    def places(self) -> int:
        return sum(guest.places for guest in self._guests)

    @property
    def strangers(self) -> int:
        """Those that have not shown their keys."""
        return sum(guest.places == 0 for guest in self._guests)

    @property
    def open_turns(self) -> int:
        return sum(guest.open_turns for guest in self._guests)

    def drain(self) -> None:
        for guest in list(self._guests):
            guest.drain()

    def end(self) -> None:
        for guest in list(self._guests):
            guest.end()
