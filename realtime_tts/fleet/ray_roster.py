"""Roster: the servers that a Ray cluster runs now. Replicas announce themselves, an ingress asks.

It is one actor of the cluster. Its knowledge is lost with its process, and back a second later:
replicas announce themselves every second, and one that no longer does is removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from realtime_tts.fleet.members import Member

ANNOUNCE_SECONDS = 1.0
FORGET_SECONDS = 10.0
NAMESPACE, NAME = "realtime-tts", "roster"


class Roster:
    """The servers announced, in memory; `clock` returns seconds, and never goes back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._announced: dict[Member, float] = {}

    def announce(self, member: Member) -> None:
        """Note that the server takes sessions."""
        self._announced[member] = self._clock()

    def leave(self, member: Member) -> None:
        """Note that the server takes no sessions any more. Idempotent."""
        self._announced.pop(member, None)

    def members(self) -> list[Member] | None:
        """Return the servers, sorted; None until all have had the time to announce themselves."""
        now = self._clock()
        if now - self._since < 3 * ANNOUNCE_SECONDS:
            return None
        for member in [one for one, at in self._announced.items() if now - at > FORGET_SECONDS]:
            del self._announced[member]
        return sorted(self._announced, key=lambda one: (one.host, one.port))
