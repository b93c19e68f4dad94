"""A signal that the kernel sends a child when its parent ends."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1


def signal_at_parents_end(number: int) -> Callable[[], Any] | None:
    """Return what a child must call between fork and exec; None where the kernel lacks such a
    signal.

    For parents with one thread: the kernel counts the end of the thread that forked, and each
    thread that inherits the child while a process with several ends. (prctl(2))
    """
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)  # before the fork: nothing is loaded after it
    return lambda: library.prctl(_PR_SET_PDEATHSIG, number)
