"""JsonSocket: JSON messages in and out of one socket, with limits, keys and a proper end.

It knows nothing of speech: `socket.py` builds on it. Nothing that a client sends ends another's
socket, and nothing that fails here is without a word in the log.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from starlette.websockets import WebSocket

from realtime_tts.dialects.segment import Messages
from realtime_tts.dialects.socket_writer import SocketWriter, WriterFullError
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.intake import Intake
from realtime_tts.protocol.messages import CloseCode, ErrorMessage
from realtime_tts.protocol.parsing import ProtocolError, load_object
from realtime_tts.server.auth import LATE_KEY
from realtime_tts.server.front import Front
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.session_settings import wire_limits
from realtime_tts.server.speech import SpeechError
from realtime_tts.server.websocket import ABORT_EXTENSION, READING_SECONDS, SLOW_READER


class JsonSocket(abc.ABC):
    """One accepted socket. Subclasses fill in the hooks; they are plain calls, and only `taken_in`
    may wait."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        self.front = front
        self.websocket = websocket
        self.socket_id = secrets.token_hex(6)
        self.limits = wire_limits(front.config, front.engine.info)
        self.writer = SocketWriter(websocket, front.max_outbox())
        client = websocket.client
        self._client = f"{client.host}:{client.port}" if client is not None else "unknown"
        self._reporter = SessionReporter(self.socket_id, self._client, front.metrics)
        self._check_key: Callable[[str], bool] | None = websocket.scope.get(LATE_KEY)
        self._intake = Intake(self.limits)
        self._closing = False
        self._active_at = time.monotonic()

    # What a dialect fills in.

    @abc.abstractmethod
    def received(self, message: dict[str, Any]) -> None:
        """A JSON object; keys that were null are not in it. Raises RequestError to refuse it."""

    @abc.abstractmethod
    def refusal(self, failure: TurnFailure) -> Messages:
        """What says that a message was refused, or why the socket is about to be closed."""

    @abc.abstractmethod
    async def taken_in(self) -> None:
        """Wait until the message has been dealt with; only then the next one is heard."""

    def received_bytes(self, data: bytes) -> None:
        """A binary frame. Raises RequestError to refuse it."""
        raise RequestError(f"expected a text frame with JSON, found a binary one ({len(data)} B)")

    def received_invalid(self, problem: RequestError | ProtocolError) -> None:
        """Something was refused, with `received` or before it."""
        self.say(*self.refusal(TurnFailure(problem.code, str(problem), False)))

    def close_reason(self, failure: TurnFailure) -> str:
        """What the close says of a failure that ends the socket: 123 bytes at most."""
        return failure.code

    @classmethod
    def denial(cls, status: int, failure: TurnFailure) -> Any:
        """The JSON body of a refusal before the upgrade."""
        return {"error": {"code": failure.code, "message": failure.message}}

    @classmethod
    def denial_headers(cls, failure: TurnFailure) -> Mapping[str, str]:
        """Headers of a refusal before the upgrade."""
        return {}

    # What it calls.

    def say(self, *messages: str | bytes) -> None:
        """Send, without waiting, behind everything that waits."""
        for message in messages:
            self.writer.put(message)

    def close(self, code: int = CloseCode.DONE, reason: str = "") -> None:
        """Close the socket after everything that waits."""
        self._closing = True
        self.writer.close(code, reason)

    def fail(self, failure: TurnFailure, code: int) -> None:
        """Say why, and close."""
        self._count(failure, fatal=True)
        self.say(*self.refusal(failure))
        self.close(code, self.close_reason(failure))

    @property
    def needs_key(self) -> bool:
        """The key was not among headers and parameters: it must come with the first message."""
        return self._check_key is not None

    def present_key(self, key: str | None) -> None:
        """The key of the first message. Without a valid one the socket is closed."""
        if self._check_key is not None and not (key is not None and self._check_key(key)):
            self.fail(TurnFailure("unauthorized", "a valid API key is needed", False), 1008)
        elif self._check_key is not None:
            self._check_key = None
            try:
                self.front.admit(held=1)  # from now on it takes a place
            except SpeechError as error:
                self.fail(error.failure, CloseCode.TRY_AGAIN)

    # Messages.

    async def _read(self) -> None:
        turn_at = time.monotonic()
        while True:
            message = await self.websocket.receive()
            if message["type"] == "websocket.disconnect":
                self._reporter.closed(message.get("code"), message.get("reason"))
                return
            if not self._closing:
                self._active_at = time.monotonic()
                with self._contained():
                    self._take(message)
                    await self.taken_in()
            if time.monotonic() - turn_at > READING_SECONDS:
                await asyncio.sleep(0)  # a burst of one client must not delay the others
                turn_at = time.monotonic()

    def _take(self, message: Any) -> None:
        now = time.monotonic()
        if not self._intake.admits(now):
            most = self.limits.messages_per_second
            self.fail(TurnFailure("rate_limited", f"at most {most} messages a second", False), 1008)
            return
        text = message.get("text")
        try:
            if text is None:
                self.received_bytes(message["bytes"])
            else:
                self.received(self._parsed(text))
        except SpeechError as error:
            self._count(error.failure)
            self.say(*self.refusal(error.failure))
        except (RequestError, ProtocolError) as error:
            self._count(TurnFailure(error.code, str(error), False))
            if self._intake.tolerates_bad(now):
                self.received_invalid(error)
            else:
                message = "too many messages that cannot be taken"
                self.fail(TurnFailure("too_many_errors", message, False), 1008)
        if self.needs_key and not self._closing:
            self.present_key(None)  # the first message had none

    def _parsed(self, text: str) -> dict[str, Any]:
        most = self.limits.max_message_bytes
        if len(text) > most or len(text.encode(errors="surrogatepass")) > most:
            raise RequestError(f"a message must have at most {most} bytes; send it in pieces")
        return {name: value for name, value in load_object(text).items() if value is not None}

    def lost(self, reason: str) -> None:
        """Drop the socket without a close: nothing can be sent any more."""
        self._closing = True
        self.writer.shut()
        abort: Callable[[str], None] = self.websocket.scope["extensions"][ABORT_EXTENSION]
        abort(reason)

    def bug(self) -> None:
        """Log the exception that is being handled."""
        self._reporter.bug()

    def _count(self, failure: TurnFailure, *, fatal: bool = False) -> None:
        """In the log and in the metrics, where the native protocol's errors are."""
        self._reporter.message(
            ErrorMessage(
                code=failure.code,
                message=failure.message,
                fatal=fatal,
                retryable=failure.retryable,
                retry_after_ms=failure.retry_after_ms,
            )  # fmt: skip
        )

    @contextlib.contextmanager
    def _contained(self) -> Iterator[None]:
        """Errors end this socket, no other."""
        try:
            yield
        except WriterFullError:
            self.lost(SLOW_READER)
        except Exception:
            self._reporter.bug()
            self.close(CloseCode.INTERNAL, "internal")
