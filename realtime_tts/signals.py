"""The signals of a server's process. Its handlers are not the event loop's: those are gone once the
loop is closed, and the next signal would end the process before it has cleaned up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


def at_signal(number: signal.Signals, call: Callable[[], None]) -> None:
    """Have the running event loop call `call` at each of these signals."""
    loop = asyncio.get_running_loop()
    signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))


def ignore_signals() -> None:
    """Let the process, which has done its work, end undisturbed."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
