"""DashScope's Qwen-TTS-Realtime: `/api-ws/v1/realtime`, one voice over one socket.

docs/dialects.md says what is supported. A response is a segment: in the mode `server_commit` text
is spoken as it comes, and a response ends at a commit or a pause; in the mode `commit` text waits
until it is committed. Every response that was begun or asked for ends with `response.done`.
"""

from __future__ import annotations

import time
from typing import Any

from starlette.routing import BaseRoute
from starlette.websockets import WebSocket

from realtime_tts.dialects import dashscope_messages as messages
from realtime_tts.dialects.catalogue import our_language, our_model
from realtime_tts.dialects.context import SpeechContext
from realtime_tts.dialects.fields import AskedSpeed, text_of, type_of
from realtime_tts.dialects.socket import SingleVoiceSocket
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.front import Front
from realtime_tts.server.track import Segment
from realtime_tts.server.writer import Messages

SOCKET_PATH = "/api-ws/v1/realtime"

HOLD_SECONDS = 3.0
"""A pause of this length ends a response, in the mode `server_commit`."""
SENTENCE_HOLD_SECONDS = 1.0
"""`HOLD_SECONDS` after text that ends a sentence; not every client says when a turn ends."""

_SENTENCE_ENDS = tuple(".!?…。！？")
_AFTER_SENTENCE = " \t\r\n\"'”’»)]」』）】"


def routes(front: Front) -> list[BaseRoute]:
    return [DashScopeSocket.route(front, SOCKET_PATH)]


class DashScopeSocket(SingleVoiceSocket):
    api = messages.API
    hold_seconds = HOLD_SECONDS

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._model = websocket.query_params.get("model") or front.info.model
        self._asked: dict[str, Any] = {}  # what all updates asked for
        self._wishes = messages.Wishes()
        self._appended = False  # whether text came since the last commit
        self._pause_over_at = 0.0  # from then on, text does not belong to what is being skipped
        self._event_id: str | None = None  # of the client's message being handled

    # From the client.

    def greet(self) -> None:
        self.speak_as(self._voice_settings(self._wishes))
        self.say(messages.event("session.created", session=self._session()))

    def received(self, message: dict[str, Any]) -> None:
        named = message.get("event_id")
        self._event_id = named if isinstance(named, str) else None
        actions = {
            "session.update": lambda: self._update(message.get("session", {})),
            "input_text_buffer.append": lambda: self._append(message.get("text")),
            "input_text_buffer.commit": self._commit,
            "input_text_buffer.clear": self._clear,
            "response.cancel": self._cancel_response,
            "session.finish": self._finish,
        }
        kind = type_of(message, actions)
        if self.finishing and kind not in ("response.cancel", "session.finish"):
            raise RequestError("after `session.finish` only `response.cancel` can come")
        actions[kind]()
        self._event_id = None

    def _update(self, session: Any) -> None:
        if not isinstance(session, dict):
            raise RequestError("`session` must be an object")
        given = {name: value for name, value in session.items() if value is not None}
        asked = self._asked | given
        wishes = messages.parse_wishes(asked)
        chosen = self._voice_settings(wishes)
        self.front.check_speech(chosen)
        self._asked, self._wishes = asked, wishes
        self.speak_as(chosen)
        if wishes.mode == "server_commit":
            self.speak_kept()
        self.say(messages.event("session.updated", session=self._session()))

    def _voice_settings(self, wishes: messages.Wishes) -> SessionSettings:
        info = self.front.info
        return self.front.settings(
            audio=wishes.audio,
            model=our_model(self._model, info),
            voice=messages.our_voice(wishes.voice, self.front.voice_names(self.account)),
            language=our_language(wishes.language_type, info),
            instructions=wishes.instructions or None,
            seed=wishes.seed,
            speed=AskedSpeed.nearest(wishes.speech_rate).given,
        )

    def _append(self, value: Any) -> None:
        text, now = text_of(value), time.monotonic()
        pause = SENTENCE_HOLD_SECONDS if ends_sentence(text) else HOLD_SECONDS
        at_once = self._wishes.mode == "server_commit"
        if at_once and now >= self._pause_over_at and self.between_segments:
            self.skipping = False
        self._pause_over_at = now + pause
        segment = self.take(text, at_once=at_once)
        if segment is not None and text.strip():
            self.voice.speech.hold_for(pause)
        self._appended = self._appended or bool(text)

    def _commit(self) -> None:
        if not self._appended:
            raise RequestError("the input text buffer is empty: append text before a commit")
        try:
            self.speak_kept()
        except TurnFailure:
            if not self.kept:
                self._appended = self.skipping = False
            raise
        context = self.voice
        segment = context.cut()
        self._appended = self.skipping = False
        item_id = self._response(context, segment).item_id
        self.say(messages.event("input_text_buffer.committed", item_id=item_id))

    def _clear(self) -> None:
        if self._wishes.mode == "commit":
            self.kept = ""
            self._appended = self.skipping = False
        self.say(messages.event("input_text_buffer.cleared"))

    def _cancel_response(self) -> None:
        for context in self.contexts.values():
            for segment in context.speech.segments:
                self.say(*self._ending(context, segment, "incomplete"))
        if self._wishes.mode == "server_commit":
            self._appended = self.skipping = False
        self.cancel_all()

    def _finish(self) -> None:
        if not self.finishing:
            self.speak_kept()
            self.finish()

    # To the client. Events that open and close a response are sent at once, not returned: a cancel
    # drops the returned messages that wait, and must not drop these.

    def segment_started(self, context: SpeechContext, segment: Segment) -> Messages:
        self.say(*self._response(context, segment).opening())
        return ()

    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        return [self._response(context, segment).delta(data)]

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        status = "completed" if segment.reason == "complete" else "incomplete"
        self.say(*self._ending(context, segment, status))
        return ()

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        told = [messages.error(failure, None)]
        if context.speech.open is not None:
            self.skipping, self._pause_over_at = True, time.monotonic() + HOLD_SECONDS
        for segment in context.speech.segments:
            told += self._ending(context, segment, "failed")
        return told

    def finished(self) -> Messages:
        return [messages.event("session.finished")]

    def refusal(self, failure: TurnFailure) -> Messages:
        client_event_id, self._event_id = self._event_id, None
        return [messages.error(failure, client_event_id)]

    def _response(self, context: SpeechContext, segment: Segment) -> messages.Response:
        if segment.tag is None:
            segment.tag = messages.Response(voice=context.speech.settings.voice or "")
        response: messages.Response = segment.tag
        return response

    def _ending(self, context: SpeechContext, segment: Segment, status: str) -> list[str]:
        response = self._response(context, segment)
        response.characters = segment.text_chars
        return response.closing(status)

    def _session(self) -> dict[str, Any]:
        """Return the session as it is now, in the API's words."""
        wishes = self._wishes
        chosen = messages.our_voice(wishes.voice, self.front.voice_names(self.account))
        session: dict[str, Any] = {
            "id": f"sess_{self.name}",
            "object": "realtime.session",
            "model": self._model,
            "voice": chosen or self.account.known(self.front.info.default_voice) or "",
            "mode": wishes.mode,
            "language_type": wishes.language_type,
            "response_format": wishes.response_format,
            "sample_rate": wishes.hertz,
        }
        if wishes.speech_rate != 1:
            session["speech_rate"] = AskedSpeed.nearest(wishes.speech_rate).given
        if wishes.bit_rate is not None:
            session["bit_rate"] = wishes.bit_rate
        if wishes.instructions:
            session["instructions"] = wishes.instructions
        return session


def ends_sentence(text: str) -> bool:
    """Return whether the last mark, except quotes and brackets, is one that ends a sentence."""
    return text.rstrip(_AFTER_SENTENCE).endswith(_SENTENCE_ENDS)
