"""The parent of a child process of ours (see child_process.py), as the child sees it.

A child begins with this module. It needs no asyncio, which an engine does without.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

from realtime_tts.garbage import collect_seldom, keep_imports
from realtime_tts.signals import ignore_signals

LENGTH = struct.Struct("!Q")
"""What stands before each message: how many bytes it has."""
_LOWEST_PRIORITY = 19


class Parent:
    """The parent as its child sees it. Every method ends the process if the parent is gone."""

    def __init__(self) -> None:
        self._pid = os.getppid()
        self._messages = sys.stdin.buffer
        self._answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._at_end: Callable[[], None] = lambda: None
        self._ending = threading.Lock()

    def receive(self) -> bytes:
        """Wait for the next message and return it. After `listen`, only its thread does."""
        head = self._messages.read(LENGTH.size)
        if len(head) == LENGTH.size:
            (size,) = LENGTH.unpack(head)
            message = self._messages.read(size)
            if len(message) == size:
                return message
        self._end()

    def listen(self, on_message: Callable[[bytes], None], at_end: Callable[[], None]) -> None:
        """Start the thread that calls `on_message` with each message, and `at_end` when the parent
        is gone, after which the process ends whatever its other threads do."""
        self._at_end = at_end

        def listen() -> None:
            try:
                while True:
                    on_message(self.receive())
            except BaseException:  # otherwise the parent's end would go unnoticed
                _print_exception()
                os._exit(1)

        threading.Thread(target=listen, name="parent", daemon=True).start()

    def send(self, message: bytes) -> None:
        """Send one message. Must not be called from two threads at once."""
        try:
            self._answers.write(LENGTH.pack(len(message)))
            self._answers.write(message)
            self._answers.flush()
        except BrokenPipeError:
            self._end()

    def check(self) -> None:
        """End the process if the parent is gone although another process that it forked still holds
        its end of the pipe."""
        if os.getppid() != self._pid:
            self._end()

    def _end(self) -> NoReturn:
        """End the process. Of the threads that notice, one does it: another would cut it off."""
        with self._ending:
            try:
                self._at_end()
            finally:
                os._exit(1)


def _print_exception() -> None:
    """Print it in one piece, since other children may print to the same file at the same time."""
    with contextlib.suppress(OSError):
        os.write(2, traceback.format_exc().encode(errors="backslashreplace"))


def run(module: str, background: bool) -> NoReturn:
    """Run `main` of `module` in a fresh child; its result is the exit status (None is 0)."""
    ignore_signals()
    faulthandler.enable()
    collect_seldom()
    if background:
        with contextlib.suppress(OSError, AttributeError):  # a courtesy, and not known everywhere
            os.nice(_LOWEST_PRIORITY)
    parent = Parent()
    status = 1
    try:
        imported = importlib.import_module(module)
        keep_imports()
        status = imported.main(parent) or 0
    except BaseException:
        _print_exception()
    # Not through the interpreter's shutdown: it would wait for whatever threads a model started.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
