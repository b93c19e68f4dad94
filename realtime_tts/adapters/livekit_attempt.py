"""An attempt of a LiveKit stream: from a session of ours to the framework's emitter."""

from __future__ import annotations

import asyncio
from functools import partial

from livekit.agents import APIConnectionError, APIError, APIStatusError, APITimeoutError, tts, utils
from livekit.agents.voice.io import TimedString

from realtime_tts.adapters.session_pool import Session
from realtime_tts.adapters.tracing import current_traceparent
from realtime_tts.adapters.utterance import Utterance
from realtime_tts.client import Speech, TextSource
from realtime_tts.errors import (
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
    TurnError,
)
from realtime_tts.protocol.messages import SAMPLE_RATE

_SILENCE = bytes(2 * SAMPLE_RATE // 10)
"""Sound for a text with nothing to speak: the framework expects some of every stream."""


class Attempt:
    """One attempt to speak a text: from a session to the framework's emitter.

    While text still arrives the server may be silent for any time; once the text has ended, each
    packet must arrive within `timeout` seconds.
    """

    def __init__(
        self, session: Session, emitter: tts.AudioEmitter, deadline: asyncio.Timeout, timeout: float
    ) -> None:
        self._client = session.client
        self._emitter = emitter
        self._deadline = deadline
        self._timeout = timeout
        self._turn_id = utils.shortuuid("tts_")
        self._traceparent = current_traceparent()
        self._text_ended = False
        self._silent = True

    def begin(self, *, streaming: bool) -> None:
        """Set the emitter up; the framework's ids are the turn's in the server's logs."""
        self._emitter.initialize(
            request_id=self._turn_id,
            sample_rate=SAMPLE_RATE,
            num_channels=1,
            mime_type="audio/pcm",
            stream=streaming,
        )
        if streaming:
            self._emitter.start_segment(segment_id=self._turn_id)

    async def speak(self, utterance: Utterance) -> None:
        """Speak the utterance. Raises what the client raises; TimeoutError at the deadline."""
        async for packet in utterance.packets(self._speech):
            self._silent = False
            self._emitter.push(packet)
            self._push_words(utterance)
            self._wait_on()
        self._push_words(utterance)

    def text_ended(self) -> None:
        """Note that the text has ended: from now on the server owes audio."""
        self._text_ended = True
        self._wait_on()

    def end(self, text: str) -> None:
        """Note that all has been spoken.

        If that was nothing, the framework still needs some audio, and the text for its transcript.
        """
        if self._silent and text.strip():
            self._emitter.push(_SILENCE)
            if self._client.ready.settings.word_times == "on":
                self._push_timed(text, 0.0, len(_SILENCE) / 2 / SAMPLE_RATE)

    def _speech(self, text: TextSource) -> Speech:
        """Begin a turn of its own, with an id of the framework's."""
        turn_id, self._turn_id = self._turn_id, utils.shortuuid("tts_")
        return Speech(partial(self._client.turn, turn_id, traceparent=self._traceparent), text)

    def _push_words(self, utterance: Utterance) -> None:
        for word in utterance.take_words():
            self._push_timed(word.text, word.start_ms / 1000, word.end_ms / 1000)

    def _push_timed(self, text: str, start: float, end: float) -> None:
        self._emitter.push_timed_transcript(TimedString(text, start_time=start, end_time=end))

    def _wait_on(self) -> None:
        if self._text_ended:
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._timeout)


def api_error(error: RealtimeTTSError) -> APIError:
    """Return the framework's error, whose `retryable` has it try again or change the TTS."""
    message = str(error)
    match error:
        case OverloadedError():
            body = {"code": error.server_code, "retry_after": error.retry_after}
            return APIStatusError(message, status_code=503, body=body, retryable=True)
        case HandshakeRefused(status=0) if isinstance(error.__cause__, TimeoutError):
            return APITimeoutError(message)
        case HandshakeRefused(status=0) | ConnectionLost():
            return APIConnectionError(message)
        case HandshakeRefused():
            return APIStatusError(message, status_code=error.status, retryable=error.retryable)
        case TurnError():
            status, again = 500 if error.retryable else 400, error.retryable
            body = {"code": error.server_code}
            return APIStatusError(message, status_code=status, body=body, retryable=again)
        case RequestError():
            return APIStatusError(message, status_code=400, retryable=False)
    return APIError(message, retryable=error.retryable)
