"""The signals of a server's process. Its handlers are not the event loop's: those are gone once the
loop is closed, and the next signal would end the process before it has cleaned up."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a child process ignores signals, and needs no asyncio
    from asyncio import AbstractEventLoop

INTERRUPTED = 130  # 128 and the signal's number, as shells have it


def at_signal(number: signal.Signals, loop: AbstractEventLoop, call: Callable[[], None]) -> None:
    """Have the event loop call `call` at each of these signals."""
    signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))


_clean_ups: list[Callable[[], None]] = []


def end_at_signals() -> None:
    """Until somebody else handles them, let SIGTERM and Ctrl-C end the process at once, with 0 and
    130. The first process of a container would ignore SIGTERM.

    Nothing is raised: an exception in the middle of an import, in C++, aborts the process.
    """
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as by what a script starts with &
        signal.signal(signal.SIGINT, _end)


def clean_up_at_signals(call: Callable[[], None]) -> None:
    """Have `call` called before a signal ends the process so."""
    _clean_ups.append(call)


def _end(number: int, _: object) -> None:
    ignore_signals()
    try:
        for call in _clean_ups:
            call()
    finally:
        os._exit(0 if number == signal.SIGTERM else INTERRUPTED)


def ignore_signals() -> None:
    """Let no signal end the process: its parent does, or it has done its work."""
    for name in ("SIGHUP", "SIGINT", "SIGTERM"):
        if hasattr(signal, name):  # not all are known everywhere
            signal.signal(getattr(signal, name), signal.SIG_IGN)
