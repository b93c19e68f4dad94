"""A folder that several servers share: files appear in it in one step, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""A name that a client gives a file in the folder."""

_UNFINISHED = ".unfinished-"
_ABANDONED_SECONDS = 3600.0
_SETTLED_SECONDS = 2.0
"""Seconds for which a folder that has changed may change again without another time stamp."""


class Listing:
    """Lists a folder again when its time stamp says that it may have changed.

    The stamp is compared only with itself: the folder's clock may be another machine's.
    `unreadable` is called with what keeps the folder from being read.
    """

    def __init__(self, folder: Path, unreadable: Callable[[OSError], None]) -> None:
        self._folder = folder
        self._unreadable = unreadable
        self._stamp: int | None = None
        self._seen_at = 0.0  # when this stamp was seen first
        self._settled = False  # whether the next change will give the folder another stamp
        self._is_current = False

    def entries(self, known: bool) -> list[os.DirEntry[str]] | None:
        """Return what is in the folder, then call `listed`; none if it is gone. None if the last
        listing still holds, or for a failing disk: what is known stays usable then, and the next
        call tries again. `known`: whether anything is, so that a missing folder is a fault."""
        try:
            if self._still_holds():
                return None
            with os.scandir(self._folder) as listing:
                return list(listing)
        except FileNotFoundError as error:
            self._settled = False  # it may come back with the same stamp
            if known:  # else it has not been made yet
                self._unreadable(error)
            return []
        except OSError as error:
            self._unreadable(error)
            return None

    def listed(self, whole: bool = True) -> None:
        """Say that the entries were taken. `whole`: False if some have to be read again."""
        self._is_current = whole and self._settled

    def _still_holds(self) -> bool:
        current, self._is_current = self._is_current, False  # until it is known
        stamp, now = self._folder.stat().st_mtime_ns, time.monotonic()
        if stamp != self._stamp:
            self._stamp, self._seen_at, current = stamp, now, False
        self._settled = now - self._seen_at > _SETTLED_SECONDS
        self._is_current = current
        return current


def wrong_name(whose: str, name: str) -> str:
    """Return the message for a name that does not match `NAME`. `whose`: "a voice's"."""
    shown = name if len(name) <= 80 else name[:80] + "…"
    return (
        f"{whose} name has 1 to 64 characters out of a-z, 0-9, _ and -, and begins with a letter "
        f"or a digit; found {shown!r}"
    )


def unfinished_in(folder: Path) -> Path:
    """Choose where to write a file before it is linked. Makes the folder, and removes files that a
    server left unfinished when it died, as far as this one may. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob(_UNFINISHED + "*"):
        try:
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()
        except OSError:
            continue  # another server removes them, too, or is the only one that may
    return folder / f"{_UNFINISHED}{secrets.token_hex(8)}"


def write(unfinished: Path, data: bytes) -> None:
    """Write a file before it is linked. Once this returns, it survives a power cut. The process's
    umask decides who may read it, as for every file. Raises OSError."""
    with unfinished.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def discard(unfinished: Path) -> None:
    """Remove a file that was not linked, if it is there. One that cannot be removed stays until
    `unfinished_in` finds it abandoned: what went wrong before it is what has to be told."""
    with contextlib.suppress(OSError):  # a folder that is read-only says so of no file, too
        unfinished.unlink()


def link(unfinished: Path, place: Path) -> None:
    """Make a finished file appear at `place` in one step. Raises FileExistsError, OSError."""
    try:
        os.link(unfinished, place)  # unlike a rename it replaces nothing
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: two servers that choose the same place in the same
        # millisecond end with one whole file.
        if place.exists():
            raise FileExistsError(place) from None
        os.rename(unfinished, place)
