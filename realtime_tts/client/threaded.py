"""Reads text in a thread, if its source blocks: asyncio goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import CancelledError

from realtime_tts.errors import ClientError

_WAITING = 64  # pieces read ahead at most
_END = Exception("the end of the text")  # no source yields it; some language models yield None


async def read_in_a_thread(pieces: Iterable[str]) -> AsyncGenerator[str, None]:
    """Yield the pieces as they arrive. Raises an error of the source.

    The thread is a daemon, because nothing can end a read that blocks.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | Exception] = asyncio.Queue(_WAITING)
    given_up = threading.Event()

    def put(item: str | Exception) -> bool:
        """Queue the item. Return whether more is wanted."""
        putting = queue.put(item)
        try:
            asyncio.run_coroutine_threadsafe(putting, loop).result()
        except (RuntimeError, CancelledError):
            putting.close()  # the event loop has ended, perhaps before it could begin with it
            return False
        return not given_up.is_set()

    def read() -> None:
        try:
            for piece in pieces:
                if not put(piece):
                    return
        except Exception as error:
            put(error)
        except BaseException as error:  # it ends this thread, and must not end the event loop
            put(ClientError(f"the text source ended with {error!r}"))
        else:
            put(_END)

    threading.Thread(target=read, name="realtime-tts text", daemon=True).start()
    try:
        while (item := await queue.get()) is not _END:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        given_up.set()
        while not queue.empty():  # so that a thread that waits for a place ends
            queue.get_nowait()
