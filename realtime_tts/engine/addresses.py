"""Where an engine process and its fronts meet: a socket in a private folder of its parent."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

_LONGEST_PATH = 103
"""Bytes of a Unix socket's path on macOS; Linux takes four more."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The socket of one engine process. A new process gets a new folder, so that nothing a dead one
    has said or was told reaches its successor."""

    folder: Path

    @classmethod
    def make(cls) -> Addresses:
        """Make a folder that only this user can open: in `/tmp`, if the temporary folder's path is
        too long for a socket. Raises OSError."""
        made = cls(Path(tempfile.mkdtemp(prefix="realtime-tts-")))  # mode 0700
        if len(os.fsencode(made.path)) > _LONGEST_PATH:
            made.remove()
            made = cls(Path(tempfile.mkdtemp(prefix="realtime-tts-", dir="/tmp")))
        return made

    @property
    def path(self) -> str:
        """The path at which the engine listens, to all fronts."""
        return str(self.folder / "engine")

    def listen(self) -> socket.socket:
        """The engine's socket. Fronts can connect from now on, even if nobody accepts them yet.
        Raises OSError."""
        made = socket.socket(socket.AF_UNIX)
        try:
            made.bind(self.path)
            made.listen()
        except BaseException:
            made.close()
            raise
        return made

    def connect(self) -> socket.socket:
        """A front's socket. Never blocks. Raises OSError, also once the engine has ended."""
        made = socket.socket(socket.AF_UNIX)
        try:
            made.setblocking(False)
            made.connect(self.path)
        except BaseException:
            made.close()
            raise
        return made

    def remove(self) -> None:
        """Delete the folder. Idempotent."""
        shutil.rmtree(self.folder, ignore_errors=True)
