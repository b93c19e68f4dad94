"""A signal that the kernel sends a child when its parent ends."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1


def signal_at_parents_end(number: int) -> Callable[[], Any] | None:
    """What a child calls between fork and exec; None where the kernel has no such thing.

    For parents with one thread: the kernel counts the end of the thread that forked, and each
    thread that the child is handed on to while a process with several ends. (prctl(2))
    """
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)  # before the fork: nothing is loaded after it
    return lambda: library.prctl(_PR_SET_PDEATHSIG, number)
