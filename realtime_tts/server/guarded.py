"""Guarded: protection of every socket, before and after an upgrade to a WebSocket."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, ClassVar, TypeVar

from realtime_tts.config import SocketConfig
from realtime_tts.metrics import Metrics
from realtime_tts.server.addresses import ClientAddresses
from realtime_tts.server.alarm import Alarm
from realtime_tts.server.time_slices import TimeSlices

ABORT_EXTENSION = "realtime_tts.abort"
"""Key in the ASGI scope's extensions: `abort(reason)`, for which ASGI itself has no message."""
FLUSH_EXTENSION = "realtime_tts.flush"
"""Key in the ASGI scope's extensions: `flush()` sends messages that wait for another to follow."""
UNREAD_EXTENSION = "realtime_tts.unread"
"""Key in the ASGI scope's extensions, set by the application: `unread()` returns whether the client
may not read its socket now, and so answer no ping."""


class Guarded(asyncio.Protocol):
    """Base of every socket's class, before and after an upgrade. `guarded` sets the fields."""

    settings: ClassVar[SocketConfig]
    metrics: ClassVar[Metrics]
    addresses: ClassVar[ClientAddresses]
    slices: ClassVar[TimeSlices]
    stall: Alarm
    """Rings when the peer has read nothing for too long."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        # Small, so that a client that plays speech as it comes shows progress within the deadline:
        # the kernel calls a socket writable when a third of its buffer is free, and left alone that
        # buffer grows to megabytes.
        transport.set_write_buffer_limits(high=self.settings.write_high_water)
        raw: socket.socket | None = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.settings.send_buffer)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stall.within(self.settings.write_stall)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stall.stop()


def forget(protocol: Any, *alarms: Alarm) -> None:
    """Release what keeps a finished protocol alive: only a full collection would find it, which
    would stop everything for a moment."""
    for alarm in alarms:
        alarm.release()
    if (scope := getattr(protocol, "scope", None)) is not None:
        extensions = scope.get("extensions", {})
        extensions[ABORT_EXTENSION] = _gone
        extensions.pop(FLUSH_EXTENSION, None)
        extensions.pop(UNREAD_EXTENSION, None)


def _gone(reason: str) -> None:
    """Do nothing: the connection is already gone."""


G = TypeVar("G", bound=Guarded)


def guarded(
    kind: type[G],
    settings: SocketConfig,
    metrics: Metrics,
    addresses: ClientAddresses,
    slices: TimeSlices,
) -> type[G]:
    """Return the class to pass to uvicorn as `http` or `ws`."""
    fields = {"settings": settings, "metrics": metrics, "addresses": addresses, "slices": slices}
    return type(kind.__name__, (kind,), fields)
