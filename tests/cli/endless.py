"""A model that never ends loading, and Ctrl-C meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

import pytest

from realtime_tts.cli import main
from tests.waiting import wait_until


class _Left(BaseException):
    """Instead of the end of the process, which is that of the tests."""


class EndlessModel:
    """A folder of a checkpoint whose configuration is a pipe, so that loading it never ends."""

    def __init__(self, folder: Path) -> None:
        self._pipe = folder / "config.json"
        self._writer = -1
        os.mkfifo(self._pipe)

    def environment(self) -> dict[str, str]:
        """In which loading ends no sooner: it waits for that pipe while it imports torch. Whoever
        starts a process only to end it need not import the real one, for seconds."""
        folder = self._pipe.parent
        (folder / "torch.py").write_text(f"open({str(self._pipe)!r}).read()", "utf-8")
        return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}

    def until_it_loads(self) -> None:
        wait_until(self._is_read)

    def end(self) -> None:
        """Let the thread that loads it end."""
        os.close(self._writer)

    def _is_read(self) -> bool:
        try:
            self._writer = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            return False
        return True


def interrupted_while_loading(
    words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Run this command with a model that never ends loading. Gives the status with which the
    process would have ended, there and then."""
    model, left = EndlessModel(folder), list[int]()

    def interrupt() -> None:
        model.until_it_loads()
        os.kill(os.getpid(), signal.SIGINT)

    def leave(status: int) -> NoReturn:
        left.append(status)
        model.end()
        raise _Left

    monkeypatch.setattr("os._exit", leave)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(_Left):
        main([*words, "--model", str(folder)])
    thread.join()
    (status,) = left
    return status
