"""ElevenLabs' socket of many texts, `…/multi-stream-input`: contexts that speak at the same time.

Its only word to stop a context is `close_context`, with which clients also end one that was heard
to its end. What they mean is told apart by what came before: see `_close_context`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from starlette.websockets import WebSocket

from realtime_tts.dialects import elevenlabs_answer as answer
from realtime_tts.dialects.context import Messages, SpeechContext
from realtime_tts.dialects.elevenlabs_request import Message
from realtime_tts.dialects.elevenlabs_socket import ElevenLabsSocket, State, encoded
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.front import Front

DEFAULT_ID = "default"
"""The context of messages that name none."""

_REMEMBERED = 256


class ContextsSocket(ElevenLabsSocket):
    """One socket of many contexts."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._last_id = ""  # errors are of the context that the last message was for
        self._over: deque[str] = deque(maxlen=_REMEMBERED)
        """Contexts that failed: what still comes for them is the rest of a lost text."""

    # From the client.

    def received(self, message: dict[str, Any]) -> None:
        named = message.get("context_id", message.get("contextId"))
        self._last_id = named if isinstance(named, str) else ""
        super().received(message)

    def take(self, message: Message) -> None:
        context_id = message.context_id or DEFAULT_ID
        if message.close_socket:
            self._leave()
        elif message.close_context:
            self._close_context(context_id)
        elif not self.finishing:
            self._speak(context_id, message)

    def _speak(self, context_id: str, message: Message) -> None:
        text = message.text or ""
        if context_id in self._over:
            if not text.isspace():
                return
            self._over.remove(context_id)  # it begins anew
        context = self.contexts.get(context_id)
        if context is None:
            if not text:
                return  # keeps the socket alive, or flushes what is not there
            try:
                context = self.begin(context_id)
            except (TurnFailure, RequestError):
                self._over.append(context_id)
                self._last_id = context_id
                raise
        if context.ended:
            raise RequestError(
                f"the context {context_id[:40]!r} was closed; wait for its `isFinal`, or take "
                "another id"
            )
        self.feed(context, message)

    def _close_context(self, context_id: str) -> None:
        """After a flush without text, the end of a text, which is spoken; else a barge-in.

        So do the frameworks: both close at the end of a turn, right behind such a flush, and they
        close a context at once when its listener speaks. A second close is always a barge-in.
        """
        if context_id in self._over:
            self._over.remove(context_id)
        context = self.contexts.get(context_id)
        if context is None:
            return
        if self._is_to_be_heard(context):
            context.end()
        else:
            self._silence(context_id)

    def _is_to_be_heard(self, context: SpeechContext) -> bool:
        state: State = context.tag
        closing = self.wanted.closing
        drains = state.flushed if closing == "auto" else closing == "drain"
        return drains and not context.ended

    def _silence(self, context_id: str) -> None:
        if self.cancel(context_id):
            self.say(encoded(answer.final(), context_id))

    def _leave(self) -> None:
        """`close_socket`: what was closed or flushed is spoken to its end."""
        for context_id, context in list(self.contexts.items()):
            cut_off = context.tag.unflushed and self.wanted.closing != "drain"
            if cut_off and not context.ended:
                self._silence(context_id)
        self.finish()

    # To the client.

    def done(self, context: SpeechContext) -> Messages:
        return [encoded(answer.final(), context.id)]

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        """Final as well: for some clients an error alone does not end a context."""
        self._over.append(context.id)
        return [encoded(answer.error(failure) | {"isFinal": True}, context.id)]

    def received_invalid(self, problem: RequestError | ProtocolError) -> None:
        self.say(*self.refusal(TurnFailure(answer.reason_of(problem), str(problem), False)))

    def refusal(self, failure: TurnFailure) -> Messages:
        final = {"isFinal": True} if self._last_id in self._over else {}
        return [encoded(answer.error(failure) | final, self._last_id)]
