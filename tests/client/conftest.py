"""A scripted stand-in for the server, for what the real one does not do on demand."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from realtime_tts.protocol.messages import (
    SAMPLE_RATE,
    SUBPROTOCOL,
    ClientMessage,
    Message,
    Ready,
    TurnDone,
    TurnInterrupted,
    TurnStarted,
)
from realtime_tts.protocol.parsing import decode_client_message, encode
from realtime_tts.protocol.settings import Limits, SessionSettings
from tests.waiting import SECONDS

M = TypeVar("M", bound=ClientMessage)


class Peer:
    """The server's end of one socket, with a script in a test."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket

    async def send(self, *messages: Message) -> None:
        for message in messages:
            await self.socket.send(encode(message))

    async def ready(self, limits: Limits | None = None, **settings: Any) -> None:
        await self.send(
            Ready(
                session_id="s-1",
                protocol=SUBPROTOCOL,
                server="stand-in",
                model="none",
                voices=("alto", "bass"),
                languages=("auto", "english"),
                settings=SessionSettings(**settings),
                sample_rate=SAMPLE_RATE,
                encoding="pcm_s16le",
                packet_bytes=4_096,
                limits=limits or Limits(),
            )
        )

    async def receive(self, expected: type[M]) -> M:
        message = decode_client_message(await self.socket.recv()).message
        assert isinstance(message, expected), f"expected {expected.__name__}, found {message}"
        return message

    async def started(self, turn_id: str) -> None:
        await self.send(TurnStarted(turn_id=turn_id, layout="streaming"))

    async def audio(self, *sizes: int) -> None:
        """Packets of so many samples; the first two bytes of each are its number."""
        for number, size in enumerate(sizes):
            await self.socket.send(number.to_bytes(2, "little") * size)

    async def interrupted(self, turn_id: str, **report: Any) -> None:
        fields: dict[str, Any] = {
            "samples_sent": 0,
            "played_ms": 0.0,
            "text_spoken": "",
            "text_remaining": "",
        }
        await self.send(TurnInterrupted(turn_id=turn_id, **(fields | report)))

    async def done(
        self, turn_id: str, reason: str = "complete", samples: int = 0, text_chars: int = 0
    ) -> None:
        await self.send(
            TurnDone(
                turn_id=turn_id,
                reason=reason,
                samples=samples,
                ttfa_ms=12.5 if samples else None,
                underruns=0,
                held_ms=0.0,
                text_chars=text_chars,
            )
        )

    async def speak(self, turn_id: str, samples: int, **done: Any) -> None:
        """A turn whose sound is one packet; `done`: see there."""
        await self.started(turn_id)
        await self.audio(samples)
        await self.done(turn_id, samples=samples, **done)

    async def until_closed(self) -> list[ClientMessage]:
        """Everything that still comes."""
        messages = []
        try:
            while True:
                messages.append(decode_client_message(await self.socket.recv()).message)
        except ConnectionClosed:
            return messages


Script = Callable[[Peer], Awaitable[None]]


class StandIn:
    """Serves each socket with the next script; `url` is where."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.failures: list[BaseException] = []
        self.connections = 0
        self.server: Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def start(self, *scripts: Script, **options: Any) -> str:
        self.scripts += scripts
        options = {"subprotocols": [SUBPROTOCOL], "compression": None} | options
        self.server = await serve(self._handle, "127.0.0.1", self.port, **options)
        self.port = self.server.sockets[0].getsockname()[1]
        return self.url

    async def stop(self) -> None:
        if self.server is not None:
            self.server.close()
            await self.server.wait_closed()
            self.server = None

    async def _handle(self, socket: ServerConnection) -> None:
        self.connections += 1
        try:
            await self.scripts.pop(0)(Peer(socket))
        except ConnectionClosed:
            pass  # the client left; the test says whether it should have
        except BaseException as error:
            self.failures.append(error)
            raise


async def left_by_cancelling(packets: AsyncIterable[bytes]) -> None:
    """Listen until the first packet, in a task that is then cancelled."""
    first = asyncio.Event()

    async def listen() -> None:
        async for _ in packets:
            first.set()

    listener = asyncio.create_task(listen())
    await first.wait()
    listener.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listener


@pytest.fixture
async def stand_in() -> AsyncIterator[StandIn]:
    """Not started yet: `await stand_in.start(script)` gives the URL."""
    server = StandIn()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop)
        async with asyncio.timeout(SECONDS):
            yield server
    for failure in server.failures:
        raise failure
