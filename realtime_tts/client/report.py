"""What the server says about a turn that is over."""

from __future__ import annotations

from dataclasses import dataclass, fields

from realtime_tts.protocol.messages import SAMPLE_RATE, TurnDone, TurnInterrupted


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended, by the server's own measure.

    `reason`: complete, interrupted, error, idle, closed, max_length, or a guard's. `samples` at
    24 kHz were sent. `ttfa_ms` counts from the first text at the server to the first packet, None
    if there was none. `underruns`: packets sent too late for gapless playback. `held_ms`: time
    the speech waited for text; `held_inside_word`: how often the listener may have heard it wait in
    the middle of a word. `moves`: how often another engine went on with it.
    """

    turn_id: str
    reason: str
    samples: int
    ttfa_ms: float | None
    underruns: int
    held_ms: float
    text_chars: int
    held_inside_word: int = 0
    moves: int = 0

    @property
    def seconds(self) -> float:
        """Length of the speech that was sent."""
        return self.samples / SAMPLE_RATE

    @classmethod
    def of(cls, message: TurnDone) -> TurnResult:
        """The result in a `turn.done`."""
        return cls(**{one.name: getattr(message, one.name) for one in fields(cls)})


@dataclass(frozen=True, slots=True)
class Interrupted:
    """What the listener heard of an interrupted turn.

    `text_spoken` + `text_remaining` is the turn's text as it was sent. Where the cut lies is an
    estimate from the audio played; without a position from the caller `played_ms` is one too.
    """

    turn_id: str
    samples_sent: int
    played_ms: float
    text_spoken: str
    text_remaining: str

    @classmethod
    def of(cls, message: TurnInterrupted) -> Interrupted:
        """The report in a `turn.interrupted`."""
        return cls(**{one.name: getattr(message, one.name) for one in fields(cls)})
