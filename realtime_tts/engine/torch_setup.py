"""What torch is told before anything is loaded."""

from __future__ import annotations

import os

import torch

from realtime_tts.errors import ConfigError


def prepare_torch(device: str, threads: int | None) -> None:
    """Check that the device is there, and give CPU work its threads, before anything is loaded.

    Raises ConfigError.
    """
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter: a build without that backend
        why = str(error).splitlines()[0]
        raise ConfigError(f"torch cannot use the device {device!r}: {why}") from error
    torch.set_num_threads(_default_threads() if threads is None else threads)


def _default_threads() -> int:
    """The threads of CPU work: all cores but one, which the sockets need, and 8 at most.

    Where two threads of a matrix product share a core with anything else, each waits for the
    other's turn, and a step takes ten times as long.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(max((cores or 1) - 1, 1), 8)
