"""Speech as the answer to an HTTP request: what every API that has one needs.

`read_body` and `read_object` take the request in, `answering` speaks for as long as the client
listens, `sounds` turns a stream's packets into pieces of the answer, `Reply` sends them. None of it
knows an API; `speech_endpoint.py` puts them together.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, cast

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.dialects.silence import SILENCE, STALL_SECONDS, silences
from realtime_tts.dialects.timing import moved
from realtime_tts.errors import RequestError
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.protocol.parsing import load_object
from realtime_tts.protocol.settings import Limits
from realtime_tts.server.speech import SpeechStream, SpokenSpan
from realtime_tts.server.websocket import ABORT_EXTENSION

EVENTS = "text/event-stream"
_BYTES_PER_CHAR = 12  # `\ud83d\ude00`: what a JSON string can make of one character
_SILENCE_SECONDS = len(SILENCE) / BYTES_PER_SAMPLE / SAMPLE_RATE


class BodyTooLarge(RequestError):
    """The request has more bytes than were allowed; they have been read and dropped."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the body must have at most {max_bytes} bytes")


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
        raise BodyTooLarge(max_bytes)
    return bytes(body)


def most_body_bytes(chars: int, limits: Limits) -> int:
    """Of a request whose texts have so many characters: beside them, what one message may have."""
    return _BYTES_PER_CHAR * chars + limits.max_message_bytes


async def read_object(receive: Receive, limits: Limits) -> dict[str, Any]:
    """The JSON object that is the body, with room for one text.

    Raises BodyTooLarge, ClientGone, and RequestError or ProtocolError for what is no JSON object.
    """
    body = await read_body(receive, most_body_bytes(limits.max_text_chars, limits))
    try:
        return load_object(body.decode())
    except UnicodeDecodeError:
        raise RequestError("the body must be a JSON object in UTF-8") from None


def check_text(name: str, text: str, limits: Limits) -> None:
    """Raise RequestError if this field is empty or too long to be spoken."""
    most = limits.max_text_chars
    if not 1 <= len(text) <= most:
        raise RequestError(f"`{name}` must have 1 to {most} characters, it has {len(text)}")


def client_of(scope: Scope) -> str:
    """Who asks, for the log: address and port."""
    return "{}:{}".format(*(scope.get("client") or ("unknown", 0)))


def new_request_id() -> str:
    """What `x-request-id` says, and the log."""
    return f"req_{secrets.token_hex(12)}"


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
                for piece in silences(encoder):
                    yield piece
                continue
            if packet is not None:
                yield encoder.encode(packet)
        yield encoder.finish()


async def timed_sounds(
    stream: SpeechStream, encoder: Encoder
) -> AsyncGenerator[tuple[bytes, SpokenSpan | None], None]:
    """The same, each piece with the text that became spoken with it, in seconds of the answer.
    What there is more of the one or the other comes alone."""
    before, gap, filled = 0, 0.0, 0.0

    def spoken() -> SpokenSpan | None:
        span = stream.take_spoken()
        return None if span is None else moved(span, filled)

    async with contextlib.aclosing(sounds(stream, encoder)) as pieces:
        async for piece in pieces:
            if stream.samples == before:
                gap += _SILENCE_SECONDS  # ours, in a stall, if speech follows it
            else:
                filled, gap = filled + gap, 0.0
            before = stream.samples
            yield piece, spoken()
    while (span := spoken()) is not None:
        yield b"", span
        await asyncio.sleep(0)  # who puts long ones into messages leaves room for others


class Reply:
    """One response: it begins with the first piece, so that until then a refusal has a status."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        self.request_id = request_id
        self.headers: Mapping[str, str] = {}
        """Sent with the first piece, besides those that every reply has."""
        self.media_type: str | None = None
        """Of the answer; None until it has begun."""
        self._scope, self._receive, self._send = scope, receive, send

    async def send_all(self, media_type: str, pieces: AsyncGenerator[bytes, None]) -> None:
        """200 with the first piece, then all as they come; empty ones are not sent."""
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                if self.media_type is None:
                    await self._start(media_type)
                if piece:
                    await self.send(piece)
        await self.send(b"", more=False)

    async def send(self, body: bytes, *, more: bool = True) -> None:
        """A piece of the answer, once it has begun; the last has no `more`."""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def refuse(self, response: Response, event: bytes = b"", *, cut: bool = False) -> None:
        """This instead of speech. If that has begun: `event` and the end, where the answer is of
        events, or a `cut` behind it; else the connection is cut."""
        if self.media_type is None:
            await response(self._scope, self._receive, self._send)
        elif self.media_type == EVENTS and event:
            await self.send(event)
            if cut:
                await abort(self._scope, "speech_failed")
            else:
                await self.send(b"", more=False)
        else:
            await abort(self._scope, "speech_failed")

    async def _start(self, media_type: str) -> None:
        self.media_type = media_type
        headers = [
            (b"content-type", media_type.encode()),
            (b"cache-control", b"no-cache"),
            (b"x-request-id", self.request_id.encode()),
            *((name.encode(), value.encode("latin-1")) for name, value in self.headers.items()),
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})


async def abort(scope: Scope, reason: str) -> None:
    """Cut the connection: an answer that has begun has no other way to say that it failed."""
    drop = cast("Callable[[str], None]", scope["extensions"][ABORT_EXTENSION])
    drop(reason)
    await asyncio.sleep(0)  # the loss is noticed before the application returns
