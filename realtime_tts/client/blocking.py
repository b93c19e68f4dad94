"""The client for programs that are not asynchronous: the asyncio client, with blocking calls.

Each client has a thread with an event loop, in which its asyncio client lives. It may be used from
any thread, also from several: one that sends text, another that plays, a third that interrupts.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, Self, TypeVar, Unpack

from realtime_tts.client.arguments import check_source
from realtime_tts.client.client import CLOSED, Backoff, RealtimeTTS
from realtime_tts.client.options import SessionOptions
from realtime_tts.client.speech import Speech
from realtime_tts.client.threaded import read_in_a_thread
from realtime_tts.client.turn import Turn
from realtime_tts.client.turn_view import TurnView
from realtime_tts.errors import ClientError
from realtime_tts.protocol.messages import DEFAULT_SERVER, Ready, TurnDone, TurnInterrupted

_T = TypeVar("_T")


class _Loop:
    """An event loop in a thread of its own, which ends with the program at the latest."""

    def __init__(self) -> None:
        begun = threading.Event()
        self._closing = threading.Lock()
        self._closed = False
        run = partial(asyncio.run, self._main(begun))
        self._thread = threading.Thread(target=run, name="realtime-tts", daemon=True)
        self._thread.start()
        begun.wait()

    def wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run `work` and return its result. An interrupted wait (Ctrl-C) cancels the work."""
        with self._closing:  # the end cancels what has begun; later work would never be done
            if self._closed or not self._thread.is_alive():  # as at the program's end
                work.close()
                raise ClientError(CLOSED)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise ClientError(CLOSED) from None
        except BaseException:
            future.cancel()
            raise

    def packets(self, source: AsyncGenerator[bytes, None]) -> Iterator[bytes]:
        """Yield the packets of `source`. Leaving the loop early closes it."""
        reading = asyncio.Lock()

        async def following() -> bytes | None:
            async with reading:
                return await anext(source, None)

        async def close() -> None:
            async with reading:  # a read that Ctrl-C cancelled may not be over yet
                await source.aclose()

        try:
            while (packet := self.wait(following())) is not None:
                yield packet
        finally:
            if threading.current_thread() is self._thread:  # where garbage may be collected, too
                asyncio.run_coroutine_threadsafe(close(), self._loop)
            else:
                with contextlib.suppress(ClientError):  # the client is closed, and so is the source
                    self.wait(close())

    def close(self) -> None:
        """End the thread, and calls that still wait in it. Idempotent."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _main(self, begun: threading.Event) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        begun.set()
        await self._over.wait()


class SyncRealtimeTTS:
    """A session with a server: `with SyncRealtimeTTS(...) as tts`.

    Arguments, options, errors and methods are as in `RealtimeTTS`.
    """

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        api_key: str | None = None,
        tls_ca: str | None = None,
        backoff: Backoff = Backoff(),  # noqa: B008 - frozen
        connect_timeout: float = 10.0,
        reply_timeout: float = 10.0,
        **options: Unpack[SessionOptions],
    ) -> None:
        self._client = RealtimeTTS(
            server,
            api_key=api_key,
            tls_ca=tls_ca,
            backoff=backoff,
            connect_timeout=connect_timeout,
            reply_timeout=reply_timeout,
            **options,
        )
        self._loop = _Loop()

    def __enter__(self) -> Self:
        try:
            self.connect()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """URL of the server's WebSocket."""
        return self._client.url

    @property
    def ready(self) -> Ready:
        """What the server said about itself. Raises ClientError before the first connection."""
        return self._client.ready

    @property
    def connected(self) -> bool:
        """Whether the socket is open, as far as is known."""
        return self._client.connected

    def connect(self, *, retry_for: float = 0.0) -> None:
        """Connect now; without this the first turn does. Idempotent."""
        self._loop.wait(self._client.connect(retry_for=retry_for))

    def close(self) -> None:
        """Close the socket; a turn still running ends with ConnectionLost. Idempotent."""
        try:
            self._loop.wait(self._client.close())
        except ClientError:
            return  # it was closed before
        self._loop.close()

    def configure(self, **options: Unpack[SessionOptions]) -> None:
        """Change settings for the turns that begin from now on; None resets one."""
        self._loop.wait(self._client.configure(**options))

    def turn(self, turn_id: str | None = None, *, traceparent: str | None = None) -> SyncTurn:
        """Begin a new turn. Connects first where needed."""
        turn = self._client.turn(turn_id, traceparent=traceparent)
        return SyncTurn(self._loop.wait(turn), self._loop)

    def speak(self, text: str | Iterable[str], *, traceparent: str | None = None) -> SyncSpeech:
        """Speak a text, or text deltas as they arrive; iterate over the result for the packets.

        An iterable, such as the stream of a language model's answer, is read in a thread of its
        own: text goes out and packets come in at the same time.
        """
        check_source(text, blocking=True)
        source = text if isinstance(text, str) else read_in_a_thread(text)
        return SyncSpeech(self._client.speak(source, traceparent=traceparent), self._loop)


class SyncTurn(TurnView):
    """One turn: send text, iterate over the packets. See `Turn`.

    Leaving the loop early interrupts the turn, and so does leaving `with tts.turn() as turn` before
    it is over.
    """

    def __init__(self, turn: Turn, loop: _Loop) -> None:
        super().__init__(turn._inbox, turn._sent)
        self._turn, self._loop = turn, loop

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(ClientError):  # the client is closed, and so is the turn
            if not self.over:
                self.abandon()

    def send(self, delta: str, *, end: bool = False) -> None:
        """Send a text delta, as it came from the language model. `end`: it is the last."""
        self._loop.wait(self._turn.send(delta, end=end))

    def flush(self) -> None:
        """Have the text sent so far spoken to its end; the turn goes on."""
        self._loop.wait(self._turn.flush())

    def end(self) -> None:
        """Report that no more text comes. Idempotent."""
        self._loop.wait(self._turn.end())

    def __iter__(self) -> Iterator[bytes]:
        return self._loop.packets(aiter(self._turn))

    def __next__(self) -> bytes:
        packet = self._loop.wait(self._next())
        if packet is None:
            raise StopIteration
        return packet

    async def _next(self) -> bytes | None:
        return await anext(self._turn, None)

    def played(self, played_ms: float) -> None:
        """Report how much the listener has heard."""
        self._loop.wait(self._turn.played(played_ms))

    def interrupt(self, played_ms: float | None = None) -> TurnInterrupted:
        """Stop speaking, from any thread: no further packet comes out of the turn."""
        return self._loop.wait(self._turn.interrupt(played_ms))

    def abandon(self, error: BaseException | None = None, played_ms: float | None = None) -> None:
        """Stop speaking without waiting for an answer. With `error`, reading raises it."""

        async def abandon() -> None:
            self._turn.abandon(error, played_ms)

        self._loop.wait(abandon())


class SyncSpeech:
    """A text that is being spoken, from `SyncRealtimeTTS.speak`. Iterate over it once for the
    packets.

    Leaving the loop early interrupts the turn. So does an error in the text source, which the loop
    then raises as it is.
    """

    def __init__(self, speech: Speech, loop: _Loop) -> None:
        self._speech, self._loop = speech, loop

    @property
    def turn(self) -> SyncTurn | None:
        """The turn that speaks the text, once iteration has begun."""
        turn = self._speech.turn
        return None if turn is None else SyncTurn(turn, self._loop)

    @property
    def result(self) -> TurnDone | None:
        """How the turn ended, once the server has reported it."""
        return self._speech.result

    @property
    def interrupted(self) -> TurnInterrupted | None:
        """What was heard, if the turn was interrupted and the server has answered."""
        return self._speech.interrupted

    def interrupt(self, played_ms: float | None = None) -> TurnInterrupted:
        """Stop speaking, from another thread than the one that listens; its loop just ends."""
        return self._loop.wait(self._speech.interrupt(played_ms))

    def __iter__(self) -> Iterator[bytes]:
        return self._loop.packets(aiter(self._speech))
