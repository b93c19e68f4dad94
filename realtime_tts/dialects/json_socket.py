"""JsonSocket: JSON messages over one socket, with limits, keys and a proper end.

It knows nothing of speech: `socket.py` builds on it.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from typing import Any, ClassVar

from starlette.websockets import WebSocket

from realtime_tts.dialects.api import Api
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.intake import Intake
from realtime_tts.protocol.messages import CloseCode, close_reason
from realtime_tts.protocol.parsing import ProtocolError, TooLarge, load_object
from realtime_tts.server.auth import LATE_KEY
from realtime_tts.server.denials import is_page
from realtime_tts.server.front import Front
from realtime_tts.server.socket import ServedSocket
from realtime_tts.server.writer import Messages


class JsonSocket(ServedSocket):
    """An accepted socket. Subclasses fill in the hooks, which are plain calls."""

    api: ClassVar[Api]
    """The API whose errors refuse a socket before the upgrade."""
    revoked_code: ClassVar[CloseCode] = CloseCode.UNAUTHORIZED
    """The close code of a socket whose key is no longer valid."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self.limits = front.limits
        self.closing = False
        """Whether the socket is about to be closed: no message is handled any more."""
        self._check_key: Callable[[str], bool] | None = websocket.scope.get(LATE_KEY)
        self._intake = Intake(self.limits, self.bad)
        self._active_at = time.monotonic()

    # What a dialect fills in.

    @abc.abstractmethod
    def received(self, message: dict[str, Any]) -> None:
        """Handle a JSON object without its null keys. Raises RequestError to refuse it."""

    @abc.abstractmethod
    def refusal(self, failure: TurnFailure) -> Messages:
        """Return the messages that say why a message was refused, or why the socket is closed."""

    def received_invalid(self, problem: RequestError | ProtocolError) -> None:
        """Tell the client about a message that was refused, by `received` or before it."""
        self.say(*self.refusal(self.api.failure_of(problem)))

    def close_reason(self, failure: TurnFailure) -> str:
        """Return the reason of the close for a failure that ends the socket: 123 bytes at most."""
        return failure.code

    @classmethod
    async def refuse(cls, websocket: WebSocket, failure: TurnFailure) -> None:
        refusal = cls.api.of_failure(failure)
        if is_page(websocket.headers):
            await websocket.accept(cls.subprotocol(websocket.scope))
            bad = refusal.status == 400
            code = CloseCode.POLICY if bad else CloseCode.TRY_AGAIN
            await websocket.close(code, close_reason(failure.message) if bad else failure.code)
            return
        response = cls.api.response(refusal, cls.api.new_request_id())
        await websocket.send_denial_response(response)

    # What a dialect calls.

    def say(self, *messages: str | bytes) -> None:
        """Send, without waiting, after everything that waits."""
        for message in messages:
            self.writer.put(message)

    def close(self, code: int = CloseCode.DONE, reason: str = "") -> None:
        """Close the socket after everything that waits."""
        self.closing = True
        self.writer.close(code, reason)

    def unread(self) -> bool:
        """Return whether nothing is to be said: clients then keep a socket in a pool, in which
        nobody reads it, so that no ping is answered."""
        return self.open_turns == 0

    def lost(self, reason: str) -> None:
        self.closing = True
        super().lost(reason)

    def faulted(self) -> None:
        self.close(CloseCode.INTERNAL, "internal")

    def fail(self, failure: TurnFailure, code: int) -> None:
        """Tell the client why, and close."""
        self.reporter.failed(failure, fatal=True)
        self.say(*self.refusal(failure))
        self.close(code, self.close_reason(failure))

    def revoke(self, why: TurnFailure) -> None:
        """Close the socket, because its key is no longer valid."""
        with self.contained():
            if not self.closing:
                self.fail(why, self.revoked_code)

    @property
    def needs_key(self) -> bool:
        """Whether the first message must bring the key: headers and parameters had none."""
        return self._check_key is not None

    def present_key(self, key: str | None) -> None:
        """Check the key of the first message; without a valid one the socket is closed."""
        if self._check_key is not None and not (key is not None and self._check_key(key)):
            self.fail(TurnFailure("unauthorized", "a valid API key is needed"), 1008)
        elif self._check_key is not None:
            self._check_key = None
            try:
                self.front.admit(self.account, held=1)  # from now on it counts
            except TurnFailure as failure:
                self.fail(failure, CloseCode.TRY_AGAIN)

    # Messages.

    def take_frame(self, raw: str | bytes) -> None:
        if self.closing:
            return
        self._active_at = now = time.monotonic()
        if not self._intake.admits(now):
            most = self.limits.messages_per_second
            self.fail(TurnFailure("rate_limited", f"at most {most} messages a second"), 1008)
            return
        try:
            self.received(self._parsed(raw))
        except TurnFailure as failure:
            self.reporter.failed(failure)
            self.say(*self.refusal(failure))
        except (RequestError, ProtocolError) as error:
            self.reporter.failed(TurnFailure(error.code, str(error)))
            tolerated = self._intake.tolerates_bad(now)
            self.received_invalid(error)
            if isinstance(error, TooLarge) and not self.closing:
                # It may have been text, of whichever context: none may go on with a hole in it.
                self.close(CloseCode.TOO_BIG, error.code)
            if not (tolerated or self.closing):
                message = "too many messages that cannot be taken"
                self.fail(TurnFailure("too_many_errors", message), 1008)
        if self.needs_key and not self.closing:
            self.present_key(None)  # the first message had none

    def _parsed(self, raw: str | bytes) -> dict[str, Any]:
        if isinstance(raw, bytes):
            raise RequestError(
                f"expected a text frame with JSON, found a binary one ({len(raw)} B)"
            )
        most = self.limits.max_message_bytes
        if len(raw) > most or len(raw.encode(errors="surrogatepass")) > most:
            raise TooLarge(f"a message must have at most {most} bytes; send it in pieces")
        return {name: value for name, value in load_object(raw).items() if value is not None}
