"""Roster: which servers a Ray cluster runs now. Replicas announce themselves, an ingress asks.

It is one actor of the cluster. What it knows it forgets with its process, and has again a second
later: replicas announce themselves every second, and whoever does not any more is struck off.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from realtime_tts.fleet.members import Member

ANNOUNCE_SECONDS = 1.0
FORGET_SECONDS = 10.0
NAMESPACE, NAME = "realtime-tts", "roster"


class Roster:
    """In memory; `clock` gives seconds, and never goes back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._heard: dict[Member, float] = {}

    def announce(self, member: Member) -> None:
        """It takes sessions."""
        self._heard[member] = self._clock()

    def leave(self, member: Member) -> None:
        """It takes none any more. Idempotent."""
        self._heard.pop(member, None)

    def members(self) -> list[Member] | None:
        """In a fixed order; None until everybody has had the time to announce itself."""
        now = self._clock()
        if now - self._since < 3 * ANNOUNCE_SECONDS:
            return None
        for member in [one for one, at in self._heard.items() if now - at > FORGET_SECONDS]:
            del self._heard[member]
        return sorted(self._heard, key=lambda one: (one.host, one.port))
