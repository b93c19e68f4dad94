"""SingleVoiceSocket: for APIs without ids, where a socket is one voice, saying one thing at a time.

The voice and the format may be changed at any time, for the text that follows: what was said
before is spoken to its end in the old ones, and then the new ones take over.
"""

from __future__ import annotations

from starlette.websockets import WebSocket

from realtime_tts.dialects.context import SpeechContext
from realtime_tts.dialects.socket import SpeechSocket
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.front import Front


class SingleVoiceSocket(SpeechSocket):
    """Its contexts follow one another, each with its settings. Every segment is a file of its
    own."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._chosen: SessionSettings | None = None
        self._voice: SpeechContext | None = None

    def check(self, chosen: SessionSettings) -> None:
        """Raise RequestError if this server cannot speak so."""
        self.front.check_speech(chosen)

    def speak_as(self, chosen: SessionSettings) -> None:
        """Text that follows is spoken so."""
        self._chosen = chosen
        current, self._voice = self._voice, None
        if current is not None and current.id in self.contexts:
            if current.speaking:
                current.end()
            else:
                self.cancel(current.id)

    @property
    def voice(self) -> SpeechContext:
        """Takes the text. Raises TurnFailure and RequestError, as `open_context` does."""
        if self._voice is None or self._voice.ended:
            assert self._chosen is not None, "`speak_as` comes first"
            self._voice = self.open_context(
                str(self._opened), self._chosen,
                lasting=True, continuous=False, after=self._last_context(),
            )  # fmt: skip
        return self._voice

    def silence(self) -> None:
        """Silence at once: of all the text so far nothing is sent after this."""
        for context_id in list(self.contexts):
            self.cancel(context_id)

    def _last_context(self) -> SpeechContext | None:
        return next(reversed(self.contexts.values()), None)
