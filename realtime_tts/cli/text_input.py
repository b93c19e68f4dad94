"""Text from standard input while it is still arriving."""

from __future__ import annotations

import asyncio
import codecs
import os
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import CancelledError

_READ_BYTES = 4096
_WAITING = 64  # pieces read ahead of the server at most


async def text_from(descriptor: int = 0) -> AsyncGenerator[str, None]:
    """The text of a file descriptor, in the pieces in which it comes, decoded from UTF-8.

    A character cut by a read is kept until it is whole; bytes that are no UTF-8 become U+FFFD.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | OSError | None] = asyncio.Queue(_WAITING)

    def put(item: str | OSError | None) -> None:
        asyncio.run_coroutine_threadsafe(queue.put(item), loop).result()

    # A thread, because neither terminals nor regular files fit asyncio's pipes everywhere; a
    # daemon, because nothing can wake a read when the user has had enough.
    threading.Thread(target=_pump, args=(descriptor, put), name="stdin", daemon=True).start()
    while (item := await queue.get()) is not None:
        if isinstance(item, OSError):
            raise item
        yield item


def _pump(descriptor: int, put: Callable[[str | OSError | None], None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        try:
            while data := os.read(descriptor, _READ_BYTES):
                if text := decoder.decode(data):
                    put(text)
            if text := decoder.decode(b"", final=True):
                put(text)
            put(None)
        except OSError as error:
            put(error)
    except (RuntimeError, CancelledError):
        return  # the event loop has ended: nobody wants the rest
