"""Deepgram's sockets: what both have in common, and `/v1/speak`, where nothing has a name.

There is one voice per socket, in the format of its address; its text is cut by flushes. As in the
original, what cannot be accepted ends the socket: an `Error`, then a close with its code. Only a
flush too many of `/v1/speak` gets a warning.
"""

from __future__ import annotations

import abc
import secrets
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from starlette.websockets import WebSocket

from realtime_tts.dialects import deepgram_messages as messages
from realtime_tts.dialects.context import SpeechContext
from realtime_tts.dialects.socket import SpeechSocket
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError, UnknownType
from realtime_tts.server.front import Front
from realtime_tts.server.track import Segment
from realtime_tts.server.writer import Messages

Command = Callable[[dict[str, Any]], None]

ONLY = ""  # the id of the one context


class DeepgramSocket(SpeechSocket):
    """`Speak`, `Flush` and `Close`, and how the socket ends; subclasses have their own messages."""

    api = messages.API
    max_contexts = 1
    idle_seconds = 3_600.0  # clients keep sockets for an hour, and send nothing when nobody speaks

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self.request_id = str(uuid.UUID(self.name + secrets.token_hex(10)))
        self.version = front.info.model
        self.wanted = messages.socket_wanted(websocket.query_params, front, self.account)
        front.check_speech(self.wanted.settings)
        self._failed = False

    def greet(self) -> None:
        self.say(self.greeting())
        if self.wanted.warning:
            self.say(messages.warning("SPEED_NOT_SUPPORTED", self.wanted.warning))

    @abc.abstractmethod
    def greeting(self) -> str:
        """Return the first message."""

    @abc.abstractmethod
    def commands(self) -> Mapping[str, Command]:
        """Return the messages that the client may send besides `Close`, by `type`."""

    # From the client.

    def received(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "Close":
            self.finish()
            return
        commands = self.commands()
        command = commands.get(kind) if isinstance(kind, str) else None
        if command is None:
            shown = f"{kind[:40]!r}" if isinstance(kind, str) else "none"
            raise UnknownType(f"`type` must be one of {', '.join(commands)}, Close; found {shown}")
        if self.finishing and kind in ("Speak", "Flush"):
            return  # sent before the client saw the close
        try:
            command(message)
        except TurnFailure as failure:
            self.fail(failure, messages.fatal(failure)[1])

    def voice(self) -> SpeechContext:
        """Return the context that speaks. Raises TurnFailure if there is no capacity for it now."""
        return self.contexts.get(ONLY) or self.open_context(
            ONLY,
            self.wanted.settings,
            lasting=True,
            continuous=False,
        )

    def silence(self) -> None:
        """Drop all speech of earlier text that was not sent."""
        self.cancel(ONLY)

    # To the client.

    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        return [data]

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        if segment.reason != "complete":
            text = f"speech ended early ({segment.reason}); flush more often"
            self.say(messages.warning("SPEECH_CUT_SHORT", text))
        return ()

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        self._failed = True
        code, close = messages.fatal(failure)
        self.finish(close, code)
        return [messages.error(failure)]

    def refusal(self, failure: TurnFailure) -> Messages:
        return [messages.error(failure)]

    def received_invalid(self, problem: RequestError | ProtocolError) -> None:
        failure = self.api.failure_of(problem)
        code, close = messages.fatal(failure)
        self.say(messages.error(failure))
        self.close(close, code)


class SpeakSocket(DeepgramSocket):
    """The WebSocket `/v1/speak`."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._flushed = 0
        self._cleared = 0

    def greeting(self) -> str:
        uuid = messages.model_uuid(self.wanted.model)
        return messages.greeting(
            "Metadata", self.request_id, self.wanted, self.version, model_uuid=uuid
        )

    def commands(self) -> Mapping[str, Command]:
        return {"Speak": self._speak, "Flush": self._flush, "Clear": self._clear}

    def _speak(self, message: dict[str, Any]) -> None:
        self.voice().feed(messages.text_of(message, self.limits))

    def _flush(self, message: dict[str, Any]) -> None:
        voice = self.voice()
        try:
            voice.cut()
        except RequestError as error:  # no text waits for it, so the original goes on as well
            self.say(messages.warning("EXCESSIVE_FLUSH", str(error)))

    def _clear(self, message: dict[str, Any]) -> None:
        self.say(messages.message("Cleared", sequence_id=self._cleared))
        self._cleared += 1
        self.silence()  # also drops what waits before the answer

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        super().segment_done(context, segment)
        if segment.flushed:
            self.say(messages.message("Flushed", sequence_id=self._flushed))
            self._flushed += 1
        return ()
