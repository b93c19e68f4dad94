"""A scripted server, for what the real one does not do on demand."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from realtime_tts.protocol.messages import Ready
from realtime_tts.protocol.parsing import encode
from realtime_tts.protocol.settings import Limits, SessionSettings

READY = Ready(
    session_id="s-1",
    protocol="realtime-tts.v1",
    server="stand-in",
    model="none",
    voices=("alto",),
    languages=("auto",),
    settings=SessionSettings(),
    sample_rate=24_000,
    encoding="pcm_s16le",
    packet_bytes=4096,
    limits=Limits(),
)


class Peer:
    """The server's end of one socket."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket

    async def send(self, kind: str, turn_id: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, "turn_id": turn_id, **fields}))

    async def audio(self, value: int, samples: int) -> None:
        await self.socket.send(value.to_bytes(2, "little") * samples)

    async def done(self, turn_id: str, reason: str, samples: int, text_chars: int) -> None:
        await self.send(
            "turn.done",
            turn_id,
            reason=reason,
            samples=samples,
            ttfa_ms=1.0,
            underruns=0,
            held_ms=0.0,
            text_chars=text_chars,
        )

    async def receive(self, kind: str) -> dict[str, Any]:
        """The next message, which has to be of this type."""
        message: dict[str, Any] = json.loads(await self.socket.recv())
        assert message["type"] == kind, message
        return message

    async def text(self, after: str | None = None) -> tuple[str, str]:
        """(turn_id, text) up to the end of a turn's text; what comes for `after` is dropped."""
        said = ""
        while True:
            message = json.loads(await self.socket.recv())
            if message["turn_id"] != after:
                said += message.get("text", "")
                if message["type"] == "turn.end" or message.get("end"):
                    return message["turn_id"], said


Script = Callable[[Peer], Awaitable[None]]


@contextlib.asynccontextmanager
async def stand_in(script: Script) -> AsyncIterator[str]:
    """The address of a server that runs `script` on each socket, after its settings."""
    failures: list[Exception] = []

    async def handle(socket: ServerConnection) -> None:
        try:
            await socket.send(encode(READY))
            peer = Peer(socket)
            start = await peer.receive("session.start")  # for the times of words
            assert start["word_times"] == "on"
            await socket.send(encode(READY))
            await script(peer)
        except ConnectionClosed:
            pass  # the client left, as it may
        except Exception as error:
            failures.append(error)
            raise

    async with serve(
        handle, "127.0.0.1", 0, subprotocols=[Subprotocol("realtime-tts.v1")], compression=None
    ) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    assert not failures, failures
