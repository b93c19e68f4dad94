"""A model that never ends loading, and Ctrl-C meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import NoReturn

import pytest

from realtime_tts.cli import main


class _Left(BaseException):
    """Instead of the end of the process, which is that of the tests."""


def interrupted_while_loading(
    words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Run this command with a checkpoint whose configuration is a pipe, so that loading it never
    ends. Gives the status with which the process would have ended, there and then."""
    pipe, writer, left = folder / "config.json", list[int](), list[int]()
    os.mkfifo(pipe)

    def interrupt() -> None:
        while not writer:
            try:
                writer.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:  # nobody reads yet
                time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    def leave(status: int) -> NoReturn:
        left.append(status)
        os.close(writer[0])  # lets the thread end
        raise _Left

    monkeypatch.setattr("os._exit", leave)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(_Left):
        main([*words, "--model", str(folder)])
    thread.join()
    (status,) = left
    return status
