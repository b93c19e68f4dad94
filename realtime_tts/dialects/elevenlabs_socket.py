"""What both of ElevenLabs' sockets share: their address, keys in messages, sound and its text."""

from __future__ import annotations

import abc
import json
from dataclasses import dataclass
from typing import Any

from starlette.websockets import WebSocket

from realtime_tts.dialects import elevenlabs_answer as answer
from realtime_tts.dialects.context import Messages, Segment, SpeechContext
from realtime_tts.dialects.elevenlabs_request import (
    Message,
    Wanted,
    key_in,
    parse_message,
    wanted_of,
)
from realtime_tts.dialects.fields import check_length
from realtime_tts.dialects.socket import SpeechSocket
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.front import Front
from realtime_tts.server.speech import SpokenSpan


@dataclass(slots=True)
class State:
    """What a context needs besides its speech."""

    last: str = ""  # the end of its text
    flushed: bool = False  # the last message of it was a flush without text
    unflushed: bool = False  # text came that no flush was for
    aligned_ms: int = 0  # up to where its text has been told


class ElevenLabsSocket(SpeechSocket):
    """One socket. Voice, model, language and format are those of its address."""

    wanted: Wanted
    """What its address asks for; there from the first message of a client that is known."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._agreed = False

    # From the client.

    @abc.abstractmethod
    def take(self, message: Message) -> None:
        """A message of a client that was let in."""

    def received(self, message: dict[str, Any]) -> None:
        if self.needs_key:
            self.present_key(key_in(message))
        if not (self.closing or self.needs_key or self._agreed):
            self._agree()
        if not self.closing:
            self.take(parse_message(message))

    def _agree(self) -> None:
        """The address is checked; what it asks for holds for all messages.

        At the first of them, not before: LiveKit's plugin waits for ever for the speech of a socket
        that ends sooner.
        """
        self._agreed = True
        socket, info = self.websocket, self.front.info
        voice, voices = socket.path_params["voice"], self.front.voice_names()
        try:
            self.wanted = wanted_of(socket.query_params, voice, self.settings(), info, voices)
            self.front.check_speech(self.wanted.settings)
        except RequestError as error:
            failure = TurnFailure(answer.reason_of(error), str(error), False)
            self.fail(failure, answer.close_code(failure))

    def begin(self, context_id: str) -> SpeechContext:
        """A new context. Raises TurnFailure if there is no room for it."""
        wanted = self.wanted
        return self.open_context(
            context_id,
            wanted.settings,
            hold_seconds=wanted.hold_seconds,
            tag=State(),
        )

    def feed(self, context: SpeechContext, message: Message) -> None:
        """Its text, and its flush. Raises RequestError."""
        text, state = message.text or "", context.tag
        check_length("text", text, self.limits.max_text_chars)
        opening = text == " " and not context.speaking  # how clients begin, with nothing to say
        if text and not opening:
            context.feed(self._joined(state, text))
        if text.strip():
            state.flushed, state.unflushed = False, True
        if message.flush:
            context.flush()
            state.last, state.flushed, state.unflushed = "", not text.strip(), False
        context.touch()

    def _joined(self, state: State, text: str) -> str:
        """With `auto_mode` whole sentences come, without the space between them."""
        apart = state.last.isspace() or text[0].isspace()
        glue = self.wanted.auto_mode and state.last and not apart
        state.last = text[-1]
        return " " + text if glue else text

    # To the client.

    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        return [encoded(answer.sound(data), context.id)]

    def spoken(self, context: SpeechContext, segment: Segment, span: SpokenSpan) -> Messages:
        """Who asks for `sync_alignment`, LiveKit does, takes times as the context's; the others add
        those of the messages up, as the API documents them."""
        state: State = context.tag
        told = answer.times(span, 0 if self.wanted.sync_alignment else state.aligned_ms)
        state.aligned_ms = round(span.end * 1000)
        return [encoded(told, context.id)]

    def refusal(self, failure: TurnFailure) -> Messages:
        return [encoded(answer.error(failure))]

    def close_reason(self, failure: TurnFailure) -> str:
        return answer.close_reason(failure)

    @classmethod
    def denial(cls, status: int, failure: TurnFailure) -> Any:
        return answer.detail(answer.name_of(failure), failure.message)


def encoded(message: dict[str, Any], context_id: str = "") -> str:
    """Clients look for the context under either name."""
    named = {"contextId": context_id, "context_id": context_id} if context_id else {}
    return json.dumps({**message, **named})
