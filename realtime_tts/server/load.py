"""Load: how full a server is, over all its fronts.

This is the one definition. `GET /v1/load`, HAProxy's agent check (agent.py) and the statistics for
an autoscaler give these numbers; `/metrics` has them as `tts_capacity_turns`, `tts_active_turns`,
`tts_queued_turns` and `tts_sessions`, and admission asks here what is free.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from realtime_tts.version import __version__

_Capacity = Annotated[
    int, Meta(description="Turns that can be spoken at once, as measured; 0 until ready.")
]
_Active = Annotated[int, Meta(description="Turns that hold a slot.")]
_Queued = Annotated[int, Meta(description="Turns that wait for one.")]
_Sessions = Annotated[int, Meta(description="Open sessions, and streams of other APIs.")]
_Ready = Annotated[bool, Meta(description="Loaded and warm, and the engine is well.")]
_Draining = Annotated[
    bool, Meta(description="Shutting down: what was begun goes on, nothing new begins.")
]
_Model = Annotated[
    str | None, Meta(description="The (first) checkpoint; null until the engine is ready.")
]


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How full the server is. With an engine in another process, up to half a second old."""

    capacity: _Capacity
    active: _Active
    queued: _Queued
    sessions: _Sessions
    max_sessions: int
    ready: _Ready
    draining: _Draining
    model: _Model
    version: str = __version__

    @property
    def free_turns(self) -> int:
        """Turns that could begin now without waiting."""
        return max(0, self.capacity - self.active - self.queued)

    @property
    def free_sessions(self) -> int:
        """New sessions that could come and speak now."""
        return max(0, min(self.free_turns, self.max_sessions - self.sessions))

    @property
    def share(self) -> float:
        """Turns asked for, as a share of the capacity, which autoscalers use. Above 1 while turns
        wait; 0 without a capacity."""
        return (self.active + self.queued) / self.capacity if self.capacity else 0.0
