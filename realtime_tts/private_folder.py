"""Temporary folders of a server, which runs for longer than files in /tmp are kept.

systemd-tmpfiles deletes what is old there, after ten days on many systems. It leaves a folder, and
all that is in it, to a process that has locked it (https://systemd.io/TEMPORARY_DIRECTORIES).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_locks: dict[Path, int] = {}


def make_private(prefix: str = "realtime-tts-", parent: str | None = None) -> Path:
    """Make a folder that only this user can open, and keep it. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))  # mode 0700
    keep(folder)
    return folder


def keep(folder: Path) -> None:
    """Have the folder left alone until `remove_private`, or until the process ends. Raises
    OSError."""
    _locks[folder] = os.open(folder, os.O_RDONLY)
    fcntl.flock(_locks[folder], fcntl.LOCK_SH)


def remove_private(folder: Path) -> None:
    """Delete the folder with all that is in it. Idempotent."""
    shutil.rmtree(folder, ignore_errors=True)
    if (lock := _locks.pop(folder, None)) is not None:
        os.close(lock)
