"""The garbage collector, told to leave alone what stays for good."""

from __future__ import annotations

import gc


def calm_garbage_collector() -> None:
    """Keep the collector away from what stays for good. For the whole process; call it when loaded.

    A full collection stops all threads while it looks at every object: 60 ms with two hundred
    sessions, and several times that with a model's modules, is a late packet for everybody.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
