"""Text whose source makes its reader wait, read in a thread: asyncio goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import CancelledError

_WAITING = 64  # pieces read ahead at most


async def read_in_a_thread(pieces: Iterable[str]) -> AsyncGenerator[str, None]:
    """The pieces, as they come. An error of the source comes out of here.

    The thread is a daemon, because nothing can wake a read when the user has had enough.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | Exception | None] = asyncio.Queue(_WAITING)
    given_up = threading.Event()

    def put(item: str | Exception | None) -> bool:
        """Whether more is wanted."""
        try:
            asyncio.run_coroutine_threadsafe(queue.put(item), loop).result()
        except (RuntimeError, CancelledError):
            return False  # the event loop has ended
        return not given_up.is_set()

    def read() -> None:
        try:
            for piece in pieces:
                if not put(piece):
                    return
        except Exception as error:
            put(error)
        else:
            put(None)

    threading.Thread(target=read, name="realtime-tts text", daemon=True).start()
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        given_up.set()
        while not queue.empty():  # a thread that waits for room shall end
            queue.get_nowait()
