"""How many cores there are for this process."""

from __future__ import annotations

import os

from realtime_tts.cgroups import cpu_limit


def usable_cores() -> int:
    """Return how many cores this process may use: in a container, fewer than there are.

    A part of a core counts for nothing, unless there is no more: threads that want more than the
    limit are all stopped together until the next tenth of a second.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        cores = os.cpu_count() or 1
    limit = cpu_limit()
    return cores if limit is None else max(1, min(cores, int(limit)))
