"""Speech as the answer to an HTTP request: what every API that has one needs.

`read_body` takes the request in, `answering` speaks for as long as the client listens, `sounds`
turns a stream's packets into pieces of the answer. None of it knows an API.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import cast

from starlette.types import Receive, Scope

from realtime_tts.audio.encoders import Encoder
from realtime_tts.dialects.silence import SILENCE, STALL_SECONDS
from realtime_tts.server.speech import SpeechStream
from realtime_tts.server.websocket import ABORT_EXTENSION


class BodyTooLarge(Exception):
    """The request has more bytes than were allowed; they have been read and dropped."""


class ClientGone(Exception):
    """The client hung up before its request was complete."""


async def read_body(receive: Receive, max_bytes: int) -> bytes:
    """The whole body. Raises BodyTooLarge and ClientGone.

    One that is too large is read to its end all the same (the server's deadline for bodies ends an
    endless one): a client that is still writing when the answer comes would not see the answer.
    """
    body, size = bytearray(), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size <= max_bytes:
            body += piece
        if not message.get("more_body", False):
            break
    if size > max_bytes:
        raise BodyTooLarge
    return bytes(body)


@contextlib.asynccontextmanager
async def answering(stream: SpeechStream, receive: Receive) -> AsyncIterator[SpeechStream]:
    """The stream is closed at the end of the block, or as soon as the client hangs up.

    Then it has no more packets, and what is still sent reaches nobody.
    """

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        stream.close()

    watcher = asyncio.create_task(watch(), name=f"hang-up-{stream.stream_id}")
    try:
        yield stream
    finally:
        watcher.cancel()
        stream.close()
        await asyncio.gather(watcher, return_exceptions=True)


async def sounds(stream: SpeechStream, encoder: Encoder) -> AsyncGenerator[bytes, None]:
    """The stream's sound in the encoder's format; the first piece comes with the first sound.

    So whatever refuses or fails the stream before it speaks (SpeechError) comes before the first
    piece. Pieces may be empty. A stream without sound gives a little silence. However it ends, the
    encoder is closed.
    """
    with contextlib.closing(encoder):
        packet = await stream.next()
        yield encoder.encode(SILENCE if packet is None else packet)
        while packet is not None:
            try:
                packet = await stream.next(STALL_SECONDS)
            except TimeoutError:
                yield encoder.encode(SILENCE)
                continue
            if packet is not None:
                yield encoder.encode(packet)
        yield encoder.finish()


async def abort(scope: Scope, reason: str) -> None:
    """Cut the connection: an answer that has begun has no other way to say that it failed."""
    drop = cast("Callable[[str], None]", scope["extensions"][ABORT_EXTENSION])
    drop(reason)
    await asyncio.sleep(0)  # the loss is noticed before the application returns
