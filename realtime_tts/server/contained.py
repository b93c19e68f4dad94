"""Contained: a block whose errors end one speech or socket, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType


class Contained:
    """A context manager that gives an exception of its block to `handle`, which may log it as the
    one that is handled. It can be used again and again: every event of every speech passes one, and
    `contextlib.contextmanager` takes eight calls for each."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Callable[[Exception], None]) -> None:
        self._handle = handle

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if not isinstance(error, Exception):
            return None
        self._handle(error)
        return True
