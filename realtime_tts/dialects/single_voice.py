"""SingleVoiceSocket: for APIs without ids, where a socket is one voice, saying one thing at a time.

The voice and the format may be changed at any time, for the text that follows: what was said
before is spoken to its end in the old ones, and then the new ones take over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.websockets import WebSocket

from realtime_tts.audio.encoders import Encoder
from realtime_tts.dialects.context import Segment, SpeechContext
from realtime_tts.dialects.socket import SpeechSocket
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.front import Front


@dataclass(frozen=True, slots=True)
class Manner:
    """How the text that follows is spoken. `make_encoder` raises RequestError if it cannot be."""

    settings: SessionSettings
    make_encoder: Callable[[], Encoder]


class SingleVoiceSocket(SpeechSocket):
    """Its contexts follow one another, each with its manner. Every segment is a file of its own."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._manner: Manner | None = None
        self._voice: SpeechContext | None = None
        self._opened = 0

    def check(self, manner: Manner) -> None:
        """Raise RequestError if this server cannot speak so."""
        self.front.check_speech(manner.settings)
        manner.make_encoder().close()

    def speak_as(self, manner: Manner) -> None:
        """Text that follows is spoken so."""
        self._manner = manner
        current, self._voice = self._voice, None
        if current is not None and current.id in self.contexts:
            if current.speaking:
                current.end()
            else:
                self.cancel(current.id)

    @property
    def voice(self) -> SpeechContext:
        """Takes the text. Raises SpeechError and RequestError, as `open_context` does."""
        if self._voice is None or self._voice.ended:
            assert self._manner is not None, "`speak_as` comes first"
            self._voice = self.open_context(
                str(self._opened), self._manner.settings, self._manner.make_encoder,
                lasting=True, encoder_per_segment=True, after=self._last_context(),
            )  # fmt: skip
            self._opened += 1
        return self._voice

    @property
    def unanswered(self) -> tuple[Segment, ...]:
        """Segments that have not been answered in full, in their order."""
        contexts = self.contexts.values()
        return tuple(segment for context in contexts for segment in context.segments)

    def silence(self) -> None:
        """Silence at once: of all the text so far nothing is sent after this."""
        for context_id in list(self.contexts):
            self.cancel(context_id)

    def _last_context(self) -> SpeechContext | None:
        return next(reversed(self.contexts.values()), None)
