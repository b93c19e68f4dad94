"""Where an engine process and its fronts meet: sockets in a private folder of its parent."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from realtime_tts.engine.wire import PARENT


@dataclass(frozen=True, slots=True)
class Addresses:
    """The sockets of one engine process. A new process gets a new folder, so that nothing a dead
    one has said or was told reaches its successor."""

    folder: Path

    @classmethod
    def make(cls) -> Addresses:
        """Make a folder that only this user can open. Raises OSError."""
        return cls(Path(tempfile.mkdtemp(prefix="realtime-tts-")))  # mode 0700

    @property
    def down(self) -> str:
        """The address at which the engine listens, to all fronts."""
        return f"ipc://{self.folder / 'down'}"

    def up(self, front: int) -> str:
        """The address at which this front listens."""
        return f"ipc://{self.folder / ('up' if front == PARENT else f'up-{front}')}"

    def remove(self) -> None:
        """Delete the folder. Idempotent."""
        shutil.rmtree(self.folder, ignore_errors=True)
