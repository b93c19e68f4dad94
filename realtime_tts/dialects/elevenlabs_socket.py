"""ElevenLabs' sockets, for one text and for many, and what they share: their address, keys in
messages, sound and the times of its text."""

from __future__ import annotations

import abc
import json
from dataclasses import dataclass
from typing import Any

from msgspec import structs
from starlette.websockets import WebSocket

from realtime_tts.dialects import elevenlabs_messages as messages
from realtime_tts.dialects.context import SpeechContext
from realtime_tts.dialects.fields import check_length
from realtime_tts.dialects.socket import SpeechSocket
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import CloseCode
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.protocol.ticks import ticks
from realtime_tts.server.front import Front
from realtime_tts.server.track import Segment
from realtime_tts.server.writer import Messages
from realtime_tts.text.speech_times import SpokenSpan

DEFAULT_ID = "default"
"""The id of the context of messages that name none."""


@dataclass(slots=True)
class ContextState:
    """What a context needs besides its speech."""

    flushed: bool = False  # the last message was a flush without text
    unflushed: bool = False  # text came after the last flush
    aligned_ms: int = 0  # up to where the times of its text were sent


class ElevenLabsSocket(SpeechSocket):
    """A socket whose voice, model, language and format are those of its address."""

    api = messages.API
    revoked_code = CloseCode.POLICY  # as the API's own table of errors has it
    wanted: messages.Wanted
    """What the address asks for; set by the first message of a client that is let in."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._agreed = False

    # From the client.

    @abc.abstractmethod
    def take(self, message: messages.Message) -> None:
        """Handle a message of a client that was let in."""

    def received(self, message: dict[str, Any]) -> None:
        if self.needs_key:
            self.present_key(messages.key_in(message))
        if not (self.closing or self.needs_key or self._agreed):
            self._agree()
        if not self.closing:
            self.take(messages.parse_message(message))

    def _agree(self) -> None:
        """Check the address, which holds for all messages.

        It is not checked before the first one: if a socket ends sooner, LiveKit's plugin waits for
        its speech for ever.
        """
        self._agreed = True
        address = self.websocket.query_params, self.websocket.path_params["voice"]
        try:
            self.wanted = messages.wanted_of(*address, self.front, self.account)
            self.front.check_speech(self.wanted.settings)
            self.idle_after(self.wanted.idle_seconds)
        except RequestError as error:
            failure = self.api.failure_of(error)
            self.fail(failure, messages.close_code(failure))

    def begin(self, context_id: str, message: messages.Message) -> SpeechContext:
        """Open a context, with the dictionaries and the speed of its first message. Raises
        TurnFailure if there is no capacity for it, RequestError for an unknown dictionary."""
        wanted, speed = self.wanted, message.voice_settings.our_speed.given
        lexicons = messages.lexicons_of(message.pronunciation_dictionary_locators, self.front)
        settings = structs.replace(wanted.settings, lexicons=lexicons, speed=speed)
        return self.open_context(
            context_id, settings, hold_seconds=wanted.hold_seconds, tag=ContextState()
        )

    def feed(self, context: SpeechContext, message: messages.Message) -> None:
        """Take the text of a message. Raises RequestError and TurnFailure."""
        text, state = message.text or "", context.tag
        check_length("text", text, self.limits.max_text_chars)
        opening = text == " " and not context.speaking  # how clients begin a context
        if text and not opening:
            context.feed(text, whole=self.wanted.auto_mode)
        if text.strip():
            state.flushed, state.unflushed = False, True
        context.touch()

    def flush(self, context: SpeechContext, message: messages.Message) -> None:
        """Flush the context if the message says so. Raises RequestError if too many flushes
        wait."""
        if message.flush:
            context.cut()
            context.tag.flushed = not (message.text or "").strip()
            context.tag.unflushed = False

    # To the client.

    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        return [encoded(messages.sound(data), context.id)]

    def spoken(self, context: SpeechContext, segment: Segment, span: SpokenSpan) -> Messages:
        """Clients that ask for `sync_alignment`, such as LiveKit, read times as the context's;
        others add up those of the messages, as the API documents them."""
        state: ContextState = context.tag
        told = messages.times(span, 0 if self.wanted.sync_alignment else state.aligned_ms)
        state.aligned_ms = ticks(span.end, 1000)
        return [encoded(told, context.id)]

    def refusal(self, failure: TurnFailure) -> Messages:
        return [encoded(messages.error(failure))]

    def close_reason(self, failure: TurnFailure) -> str:
        return messages.reason_to_close(failure)


class StreamSocket(ElevenLabsSocket):
    """The socket `…/stream-input`: one text, spoken as it comes; then the socket ends."""

    max_contexts = 1

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._failure: TurnFailure | None = None

    def take(self, message: messages.Message) -> None:
        if self.finishing:
            if message.text and not message.text.isspace():
                raise RequestError("the text was ended by an empty `text`; nothing follows it")
            return
        if message.text == "":
            self.finish()
            return
        try:
            context = self.contexts.get("") or self.begin("", message)
            self.feed(context, message)
            self.flush(context, message)
        except TurnFailure as failure:
            self.fail(failure, messages.close_code(failure))

    def received_invalid(self, problem: RequestError | ProtocolError) -> None:
        """End the socket, as ElevenLabs does, unless the rest is being spoken."""
        failure = self.api.failure_of(problem)
        if self.finishing:
            self.say(*self.refusal(failure))
        else:
            self.fail(failure, messages.close_code(failure))

    def finished(self) -> Messages:
        return () if self._failure else [encoded(messages.final())]

    def done(self, context: SpeechContext) -> Messages:
        """Also called when the context ended by itself, because no text came."""
        self.finish()
        return ()

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        self._failure = failure
        return [encoded(messages.error(failure))]

    def context_over(self, context: SpeechContext) -> None:
        if self._failure is not None:
            self.contexts.pop(context.id, None)
            self.close(messages.close_code(self._failure), messages.reason_to_close(self._failure))
        super().context_over(context)


class ContextsSocket(ElevenLabsSocket):
    """The socket `…/multi-stream-input`: contexts that speak at the same time.

    Its only message to stop a context is `close_context`, which clients also send for one that was
    heard to its end. What came before tells the two apart: see `_close_context`.
    """

    _last_id = ""  # context of the last message, which errors are about

    # From the client.

    def received(self, message: dict[str, Any]) -> None:
        named = message.get("context_id", message.get("contextId"))
        self._last_id = named if isinstance(named, str) else ""
        super().received(message)

    def take(self, message: messages.Message) -> None:
        context_id = message.context_id or DEFAULT_ID
        if message.close_socket:
            self._leave()
        elif message.close_context:
            ends = bool(message.text and message.text.strip()) and not self.finishing
            if ends:
                self._speak(context_id, message)
            self._close_context(context_id, ends=ends)
        elif not self.finishing:
            self._speak(context_id, message)

    def _speak(self, context_id: str, message: messages.Message) -> None:
        text = message.text or ""
        if context_id in self.failed_ids:
            if not text.isspace():
                return
            self.failed_ids.remove(context_id)  # it begins anew
        context = self.contexts.get(context_id)
        if not text and (context is None or context.ended):
            return  # it keeps the socket or the context alive, or has nothing to flush
        context = self.taking_text(context_id)
        try:
            context = context or self.begin(context_id, message)
            self.feed(context, message)
        except (TurnFailure, RequestError):
            self.lose(context_id)
            self._last_id = context_id
            raise
        self.flush(context, message)

    def _close_context(self, context_id: str, *, ends: bool) -> None:
        """After a flush without text, or with the end of its text, let the context finish; else
        treat the close as a barge-in.

        The frameworks do this: they close at the end of a turn, right after such a flush, and they
        close a context at once when its listener speaks. A second close is always a barge-in.
        """
        if context_id in self.failed_ids:
            self.failed_ids.remove(context_id)
        context = self.contexts.get(context_id)
        if context is None:
            return
        context.tag.flushed = context.tag.flushed or ends
        if self._is_to_be_heard(context):
            context.end()
        else:
            self._silence(context_id)

    def _is_to_be_heard(self, context: SpeechContext) -> bool:
        state: ContextState = context.tag
        closing = self.wanted.closing
        drains = state.flushed if closing == "auto" else closing == "drain"
        return drains and not context.ended

    def _silence(self, context_id: str) -> None:
        if self.cancel(context_id):
            self.say(encoded(messages.final(), context_id))

    def _leave(self) -> None:
        """Handle `close_socket`: what was closed or flushed is spoken to its end."""
        for context_id, context in list(self.contexts.items()):
            cut_off = context.tag.unflushed and self.wanted.closing != "drain"
            if cut_off and not context.ended:
                self._silence(context_id)
        self.finish()

    # To the client.

    def done(self, context: SpeechContext) -> Messages:
        return [encoded(messages.final(), context.id)]

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        """The error is final as well: for some clients an error alone does not end a context."""
        self.failed_ids.append(context.id)
        return [encoded(messages.error(failure) | {"isFinal": True}, context.id)]

    def refusal(self, failure: TurnFailure) -> Messages:
        final = {"isFinal": True} if self._last_id in self.failed_ids else {}
        return [encoded(messages.error(failure) | final, self._last_id)]


def encoded(message: dict[str, Any], context_id: str = "") -> str:
    """Return the message as JSON. Clients of contexts look for the id and the end under either
    spelling: the API's reference and its guide differ."""
    if not context_id:
        return json.dumps(message)
    named = {"contextId": context_id, "context_id": context_id}
    final = {"is_final": message["isFinal"]} if "isFinal" in message else {}
    return json.dumps({**message, **final, **named})
