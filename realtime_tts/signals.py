"""The signals of a server's process. Its handlers are not the event loop's: those are gone once the
loop is closed, and the next signal would end the process before it has cleaned up."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a child process ignores signals, and needs no asyncio
    from asyncio import AbstractEventLoop


def at_signal(number: signal.Signals, loop: AbstractEventLoop, call: Callable[[], None]) -> None:
    """Have the event loop call `call` at each of these signals."""
    signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))


def ignore_signals() -> None:
    """Let no signal end the process: its parent does, or it has done its work."""
    for name in ("SIGHUP", "SIGINT", "SIGTERM"):
        if hasattr(signal, name):  # not all are known everywhere
            signal.signal(getattr(signal, name), signal.SIG_IGN)
