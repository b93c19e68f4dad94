"""Speech as the answer to an HTTP request: what every API that has one needs.

`read_body` and `read_object` take the request in, `sounds` and `timed_sounds` give the pieces of
the answer. None of it knows an API; `speech_endpoint.py` puts them together.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from starlette.types import Receive

from realtime_tts.dialects.timing import spans_of
from realtime_tts.errors import RequestError
from realtime_tts.protocol.parsing import load_object
from realtime_tts.protocol.settings import Limits
from realtime_tts.server.speech import Sound, Speech, SpokenSpan

EVENTS = "text/event-stream"
_BYTES_PER_CHAR = 12  # `\ud83d\ude00`: what a JSON string can make of one character


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


async def timed_sounds(speech: Speech) -> AsyncGenerator[tuple[bytes, SpokenSpan | None], None]:
    """The speech's sound in its format, each piece with the text that became spoken with it, in
    seconds of the answer. What there is more of the one or the other comes alone.

    The first piece comes with the first sound. So whatever refuses or fails the speech before it
    speaks (TurnFailure) comes before the first piece.
    """
    given = await speech.next()
    while given is not None:
        spans = spans_of(speech)
        yield given.data if isinstance(given, Sound) else b"", next(spans, None)
        for span in spans:
            yield b"", span
            await asyncio.sleep(0)  # who puts long ones into messages leaves room for others
        given = await speech.next(fill=True)


async def sounds(speech: Speech) -> AsyncGenerator[bytes, None]:
    """The same without the text."""
    given = await speech.next()
    while given is not None:
        if isinstance(given, Sound):
            yield given.data
        given = await speech.next(fill=True)
