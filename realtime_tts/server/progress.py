"""TurnProgress: what a client gets beside the sound, so that another server can continue the turn.

Codes are sent with the sound that was made of them, so what a client has is always one moment of
the turn. `Resumption` is what another server makes of it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from realtime_tts.engine.link import Audio
from realtime_tts.protocol.effects import TurnStats
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.listener import Listener
from realtime_tts.server.paid_text import PaidText
from realtime_tts.server.resumption import (
    Part,
    PartBefore,
    Position,
    Resumption,
    made_by,
    together,
)
from realtime_tts.server.speech_text import SpeechText

_MOST_PARTS, _MOST_HOLDS = 200, 200
"""Most parts and holds in a state: more would not fit a message. The oldest parts are joined."""


class StateUpdate(NamedTuple):
    """What is new with a packet; `part` is empty if it has not changed."""

    part: bytes
    state: bytes
    codes: bytes


class _Moment(NamedTuple):
    made: int
    """Samples of the turn made by then."""
    position: Position
    codes: bytes = b""
    part: Part | None = None
    """The part that begins here, if one does."""


class TurnProgress:
    """The states of a turn for its client, made from its text and its listener. `made_by`, `seed`
    and `turn`: see `Part`. `spoken_chars`: characters that were spoken elsewhere."""

    def __init__(
        self,
        made_by: str,
        seed: int,
        turn: str,
        text: SpeechText,
        listener: Listener,
        spoken_chars: int,
    ) -> None:
        self.spoken_chars = spoken_chars
        """Characters of the turn's text spoken, as last reported to the client."""
        self.paid = PaidText()
        """How much of the text was paid for."""
        self._made_by, self._seed, self._turn = made_by, seed, turn
        self._text, self._listener = text, listener
        self._moments: deque[_Moment] = deque()
        self._position: Position | None = None
        self._sounded: deque[tuple[Position, bytes]] = deque()
        """Positions and codes whose sound the time scale still needs."""

    def resume(self, position: Position | None) -> None:
        """Continue a part of which the client has codes from another server. Without a position
        they are of no use here, and another part begins."""
        self._position = position
        if position is None:
            self.begin()

    def begin(self, pause: float = 0.0, held_before: float = 0.0) -> None:
        """Begin another part, after this pause in seconds."""
        segments, made = self._text.pipeline.segments, self._listener.parts_made
        skipped = self._text.skipped
        before = [PartBefore(made[i], segments[i].cut) for i in range(self._text.at)]
        while len(before) > _MOST_PARTS and (joined := _join_first(before)):
            skipped += joined
        # With more pauses than fit a message, the turn cannot be continued at the sample.
        made_by = self._made_by if len(before) <= _MOST_PARTS else ""
        part = Part(made_by, self._seed, self._listener.made, pause, skipped, before, self._turn)
        self._sounded.clear()
        position = self._now(0, 0, 0.0, held_before, "")
        self._moments.append(_Moment(self._listener.made, position, part=part))

    def started(self, layout: str) -> None:
        """Note that the engine has begun with the part, in this layout."""
        if self._moments:
            last = self._moments[-1]
            position = msgspec.structs.replace(last.position, layout=layout)
            self._moments[-1] = last._replace(position=position)
        elif self._position is not None:
            self._position = msgspec.structs.replace(self._position, layout=layout)

    def sounded(self, audio: Audio, held_before: float, layout: str) -> None:
        """Note that the engine made more speech of the part."""
        sound, tells = self._listener.sound, bool(audio.tokens)
        held, codes = audio.held_seconds, together(audio.codes, audio.tokens)
        position = self._now(sound.made, audio.silent, held, held_before, layout, tells=tells)
        self._sounded.append((position, codes))
        codes, last = b"", None
        while self._sounded and sound.has_left_behind(self._sounded[0][0].samples):
            last, more = self._sounded.popleft()
            codes += more
        if last is not None:
            position = msgspec.structs.replace(last, speed=float(sound.speed), place=sound.place)
            self._moments.append(_Moment(self._listener.made, position, codes))

    def update(self, samples: int, stats: TurnStats) -> StateUpdate:
        """Return what to send with the packet after which the client has `samples` of the turn."""
        part, codes = b"", b""
        while self._moments and self._moments[0].made <= samples:
            moment = self._moments.popleft()
            self._position = moment.position
            if moment.part is not None:
                part, codes = msgspec.msgpack.encode(moment.part), b""
            codes += moment.codes
        assert self._position is not None, "a part begins before it sounds"
        self.spoken_chars = max(self.spoken_chars, self._listener.words_chars)
        chars, digest = self.paid.so_far
        position = msgspec.structs.replace(
            self._position,
            chars=chars,
            digest=digest,
            ttfa_ms=stats.ttfa_ms,
            underruns=stats.underruns,
            held_inside_word=stats.held_inside_word,
            moves=stats.moves,
        )
        usable = len(position.holds) <= _MOST_HOLDS
        return StateUpdate(part, msgspec.msgpack.encode(position) if usable else b"", codes)

    def _now(
        self,
        samples: int,
        silent: int,
        held: float,
        held_before: float,
        layout: str,
        *,
        tells: bool = False,
    ) -> Position:
        text = self._text.pipeline
        return Position(
            samples,
            silent,
            held,
            held_before,
            layout,
            text.released,
            list(text.holds),
            self._text.part.cut,
            tells,
        )


def _join_first(before: list[PartBefore]) -> int:
    """Join the first two parts that a commit has separated; return how many fewer there are."""
    for index, part in enumerate(before[:-1]):
        if part.cut is not None:
            following = before[index + 1]
            before[index : index + 2] = [
                PartBefore(part.samples + following.samples, following.cut)
            ]
            return 1
    return 0


def progress_of(
    name: str,
    settings: SessionSettings,
    engine: EngineHost,
    seed: int,
    text: SpeechText,
    listener: Listener,
    resumption: Resumption | None,
) -> TurnProgress | None:
    """Make the progress of a turn, unless its settings want none. `name`: its id, if it begins
    here."""
    if settings.resume == "off":
        return None
    by = made_by(settings, engine.info_for(settings.model, settings.voice))
    if resumption is not None:
        turn, spoken = resumption.turn or name, resumption.text_chars
        return TurnProgress(by, seed, turn, text, listener, spoken)
    progress = TurnProgress(by, seed, name, text, listener, 0)
    progress.begin()
    return progress
