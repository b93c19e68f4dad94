"""Stamps, by which a change of a file is seen."""

from __future__ import annotations

from os import DirEntry
from pathlib import Path

Stamp = tuple[int, int, int] | None
"""A file's inode, time in nanoseconds and size, which change with it; None: it cannot be read."""


def stamp(file: Path | DirEntry[str]) -> Stamp:
    """Return the file's stamp now."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
