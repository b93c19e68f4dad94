"""Guarded: what every socket has, before an upgrade to a WebSocket and after, against bad peers."""

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
"""Key in the ASGI scope's extensions: `abort(reason)`, which ASGI itself has no word for."""
FLUSH_EXTENSION = "realtime_tts.flush"
"""The same: `flush()` lets messages of a WebSocket leave that no other one has followed."""


class Guarded(asyncio.Protocol):
    """What is the same for every socket, before an upgrade and after. `guarded` sets the fields."""

    settings: ClassVar[SocketConfig]
    metrics: ClassVar[Metrics]
    addresses: ClassVar[ClientAddresses]
    slices: ClassVar[TimeSlices]
    stall: Alarm
    """Rings when the peer has read nothing for too long."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        # Small, so that a reader who plays speech as it comes shows progress within the deadline:
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
    """Let go of what a protocol that is over is held by: only a full collection would find it, and
    that stops everybody."""
    for alarm in alarms:
        alarm.release()
    if (scope := getattr(protocol, "scope", None)) is not None:
        extensions = scope.get("extensions", {})
        extensions[ABORT_EXTENSION] = _gone
        extensions.pop(FLUSH_EXTENSION, None)


def _gone(reason: str) -> None:
    """There is no connection to cut any more."""


G = TypeVar("G", bound=Guarded)


def guarded(
    kind: type[G],
    settings: SocketConfig,
    metrics: Metrics,
    addresses: ClientAddresses | None = None,
    slices: TimeSlices | None = None,
) -> type[G]:
    """The class to pass to uvicorn as `http` or `ws`."""
    fields = {
        "settings": settings,
        "metrics": metrics,
        "addresses": addresses or ClientAddresses(),
        "slices": slices or TimeSlices(),
    }
    return type(kind.__name__, (kind,), fields)
