"""How many cores there are for this process."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many cores this process may use: in a container, fewer than there are."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1
