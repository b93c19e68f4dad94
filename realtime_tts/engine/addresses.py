"""The Unix socket where an engine process and its fronts meet, in a private folder."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from realtime_tts.private_folder import make_private, remove_private

_LONGEST_PATH = 103
"""The longest path of a Unix socket on macOS, in bytes; Linux allows four more."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The socket of one engine process. A new process gets a new folder, so that no message to or
    from a dead one reaches its successor."""

    folder: Path

    @classmethod
    def make(cls) -> Addresses:
        """Make a folder that only this user can open. It is in `/tmp` if the temporary folder's
        path is too long for a socket. Raises OSError."""
        made = cls(make_private())
        if len(os.fsencode(made.path)) > _LONGEST_PATH:
            made.remove()
            made = cls(make_private(parent="/tmp"))
        return made

    @property
    def path(self) -> str:
        """The path at which the engine listens, for all fronts."""
        return str(self.folder / "engine")

    def listen(self) -> socket.socket:
        """Return the engine's socket. Fronts can connect from now on, even before the engine
        accepts. Raises OSError."""
        made = socket.socket(socket.AF_UNIX)
        try:
            made.bind(self.path)
            made.listen()
        except BaseException:
            made.close()
            raise
        return made

    def connect(self) -> socket.socket:
        """Return a socket that is connected to the engine. Never blocks. Raises OSError, also once
        the engine has ended."""
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
        remove_private(self.folder)
