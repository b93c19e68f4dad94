"""Deepgram's `/v2/speak`, Flux: queued turns, and interrupts that report what was heard.

A turn is the text up to a `Flush`. All its sound lies between `SpeechStarted` and `SpeechMetadata`;
an interrupted one ends with `SpeechInterrupted` instead. Positions count the session's sound: that
of the turns before, each as far as it was sent, or heard, if it was interrupted.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs
from starlette.websockets import WebSocket

from realtime_tts.dialects import deepgram_messages as messages
from realtime_tts.dialects.context import SpeechContext
from realtime_tts.dialects.deepgram_socket import ONLY, Command, DeepgramSocket
from realtime_tts.dialects.fields import AskedSpeed
from realtime_tts.dialects.timing import words_of
from realtime_tts.errors import RequestError
from realtime_tts.server.front import Front
from realtime_tts.server.track import Segment
from realtime_tts.server.writer import Messages
from realtime_tts.text.speech_times import SpokenSpan

_SPEEDS = (0.5, 1.5)
_LARGEST_SPEED = 1e6  # beyond it, the message is refused as one without a number
_LARGEST_MS = 1e12


@dataclass(slots=True, eq=False)
class _Turn:
    """The text of a turn, and its sound so far; times in seconds."""

    speech_id: str = field(default_factory=lambda: f"dg_sp_{secrets.token_hex(6)}")
    pieces: list[str] = field(default_factory=list)
    chars: int = 0
    flushed: bool = False
    base: float = 0.0
    """Where the turn begins in the session's sound."""
    began: float | None = None
    """Where the turn begins in the context's sound; None: it has none."""
    seconds: float = 0.0
    """Seconds of sound that were sent; set when the turn is over."""
    samples: int = 0
    """Samples of speech. Sound without any is silence of ours."""
    over: bool = False
    spans: list[SpokenSpan] = field(default_factory=list)

    @property
    def end(self) -> float:
        """Where the turn ends in the session's sound, as far as it was sent."""
        return self.base + self.seconds

    def split(self, played: float) -> tuple[str, str]:
        """Return the text heard in the first `played` seconds, in whole words, and the rest."""
        text = "".join(self.pieces)
        if self.over and played >= self.seconds:
            return text, ""
        heard = 0
        for span in self.spans:
            for word in words_of(span):
                if word.end - (self.began or 0.0) > played:
                    return text[:heard], text[heard:]
                heard = text.index(word.text, heard) + len(word.text)
        return text[:heard], text[heard:]


class FluxSocket(DeepgramSocket):
    """The WebSocket `/v2/speak`."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._turns: deque[_Turn] = deque()  # the first is being spoken
        self._over: deque[_Turn] = deque()  # those that may still be heard
        self._chars = 0
        self._clock = 0.0  # seconds of the session's sound, up to the turn that is being spoken
        self._position = 0.0  # of the last interrupt with a position, in seconds
        self._sounded = False

    def greeting(self) -> str:
        uuids = [messages.model_uuid(self.wanted.model)]
        return messages.greeting(
            "Connected", self.request_id, self.wanted, self.version, model_uuids=uuids
        )

    def commands(self) -> Mapping[str, Command]:
        return {
            "Speak": self._speak,
            "Flush": self._flush,
            "Interrupt": self._interrupt,
            "Configure": self._configure,
        }

    # Text.

    def _speak(self, message: dict[str, Any]) -> None:
        text = messages.text_of(message, self.limits)
        if not text:
            return
        if not self._turns:
            self._speak_at_speed()
        voice = self.voice()
        new = not self._turns or self._turns[-1].flushed
        turn = _Turn() if new else self._turns[-1]
        most = self.limits.max_turn_chars
        if turn.chars + len(text) > most:
            raise RequestError(f"a turn has at most {most} characters; end it with `Flush`")
        voice.feed(text)
        turn.pieces.append(text)
        turn.chars += len(text)
        self._chars += len(text)
        if new:
            self._turns.append(turn)
            if len(self._turns) == 1:
                self._start(turn)

    def _flush(self, message: dict[str, Any]) -> None:
        if not self._turns or self._turns[-1].flushed:
            text = "There is no active turn. The request will be ignored."
            self.say(messages.warning("NO_ACTIVE_SPEECH", text))
            return
        self.voice().cut()
        self._turns[-1].flushed = True

    def _configure(self, message: dict[str, Any]) -> None:
        speed = message.get("speed", 1.0)
        number = isinstance(speed, int | float) and not isinstance(speed, bool)
        if not number or not -_LARGEST_SPEED < speed < _LARGEST_SPEED:
            raise RequestError("`speed` must be a number from 0.5 to 1.5")
        lowest, highest = _SPEEDS
        if lowest <= speed <= highest:
            ours = AskedSpeed.nearest(speed)
            settings = structs.replace(self.wanted.settings, speed=ours.given)
            self.wanted = replace(self.wanted, settings=settings)
            self.say(messages.message("ConfigureSuccess", applied={"speed": ours.given}))
            if ours.warning:
                self.say(messages.warning("SPEED_NOT_SUPPORTED", ours.warning))
        else:
            text = f"speed must be between {lowest} and {highest}"
            self.say(messages.not_configured(text, speed))

    def _speak_at_speed(self) -> None:
        """Speak at the speed that was asked for last, since nothing is being spoken."""
        voice = self.contexts.get(ONLY)
        if voice is not None and voice.speech.settings != self.wanted.settings:
            self.silence()

    # Interrupts.

    def _interrupt(self, message: dict[str, Any]) -> None:
        offset = _offset_of(message)
        if offset is not None and offset / 1000 < self._position:
            text = f"the playback offset must advance past {round(self._position * 1000)} ms"
            self.say(messages.warning("INVALID_INTERRUPT_OFFSET", text))
            return
        turn = self._turn_at(offset)
        if turn is None:
            code = "NO_ACTIVE_SPEECH" if self._sounded else "NO_AUDIO_GENERATED"
            self.say(messages.warning(code, "There is no speech to interrupt."))
            return
        if not turn.over:
            self._measure(turn)
        if offset is None:
            self._clock, split = turn.end, None
        else:
            # Only what was sent can be heard. If we believed a position that runs ahead, the next
            # interrupt, with a right one, would seem to go back.
            self._clock = self._position = min(offset / 1000, turn.end)
            split = turn.split(self._clock - turn.base)
        account = messages.account(turn.speech_id, turn.seconds, turn.chars)
        self.say(messages.interrupted(round(self._clock * 1000), split, account))
        self._over.clear()
        self._turns.clear()
        self.silence()  # also drops what waits before the answer

    def _turn_at(self, offset_ms: float | None) -> _Turn | None:
        """Return the turn that the listener hears: one that is over, if the position lies in it."""
        if offset_ms is not None:
            for turn in self._over:
                if offset_ms / 1000 < turn.end:
                    return turn
        return self._turns[0] if self._turns else None

    # Sound.

    def segment_started(self, context: SpeechContext, segment: Segment) -> Messages:
        self._sounded = True
        if self._turns[0].began is None:
            self._turns[0].began = segment.begins
        return ()

    def spoken(self, context: SpeechContext, segment: Segment, span: SpokenSpan) -> Messages:
        self._turns[0].spans.append(span)
        return ()

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        super().segment_done(context, segment)
        self._turns[0].samples += segment.samples
        if segment.flushed:
            self._end_turn()
        return ()

    def done(self, context: SpeechContext) -> Messages:
        if self._turns:  # `Close` ended it
            self._end_turn()
        return ()

    def finished(self) -> Messages:
        return () if self._failed else [messages.session_metadata(self._clock, self._chars)]

    def _start(self, turn: _Turn) -> None:
        turn.base = self._clock
        self.say(messages.message("SpeechStarted", speech_id=turn.speech_id))

    def _end_turn(self) -> None:
        """End the first turn at once: its sound has been sent, so nothing is queued behind it and
        no interrupt can come between."""
        turn = self._turns[0]
        self._measure(turn)
        self._turns.popleft()
        turn.over = True
        self._clock = turn.end
        self._over.append(turn)
        furthest = self.limits.max_lead_ms / 1000  # that speech is ahead of its listener
        while self._over[0].end < self._clock - furthest:
            self._over.popleft()
        if not turn.samples:
            text = "The turn had no text that can be spoken."
            self.say(messages.warning("NO_SYNTHESIZABLE_TEXT", text))
        if turn.flushed:
            self.say(messages.message("Flushed", speech_id=turn.speech_id))
        account = messages.account(turn.speech_id, turn.seconds, turn.chars)
        self.say(messages.message("SpeechMetadata", **account))
        if self._turns:
            self._start(self._turns[0])

    def _measure(self, turn: _Turn) -> None:
        voice = self.contexts.get(ONLY)
        if turn.began is not None and voice is not None:
            turn.seconds = voice.speech.seconds - turn.began


def _offset_of(message: dict[str, Any]) -> float | None:
    """Return the milliseconds of the session's sound that were played; None: not reported."""
    given = message.get("playback_offset")
    if given is None:
        return None
    fields = given if isinstance(given, dict) else {}
    value = fields.get("value")
    if fields.get("type", "time_ms") == "time_ms" and isinstance(value, int | float):
        if not isinstance(value, bool) and 0 <= value <= _LARGEST_MS:
            return value
    raise RequestError(
        '`playback_offset` must be {"type": "time_ms", "value": milliseconds, 0 or more}'
    )
