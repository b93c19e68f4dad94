"""Keeps the garbage collector away from objects that stay for good."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Look for garbage every 50,000 new objects. Call it when a process starts: what it imports and
    loads stays, and to look through that again and again is a twentieth of the imports."""
    gc.set_threshold(50_000)


def keep_imports() -> None:
    """Let no collection look at what there is now. Call it when a process has imported what it is:
    modules leave no garbage, and to look through them is a twentieth of a server's start."""
    gc.freeze()


def calm_garbage_collector() -> None:
    """Keep the collector away from what stays for good. For the whole process; call it when loaded.

    A full collection stops all threads while it looks at every object: 60 ms with two hundred
    sessions, and several times that with a model's modules, is a late packet for everybody. Objects
    that are done with leave no cycles, so little is ever found: one full collection in some ten
    million new objects is often enough. Those before it look at 5,000 objects, or at most 20,000.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 3, 700)
