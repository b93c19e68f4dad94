"""What a text asks of the voice beside its words: pauses, another voice, how to say something."""

from __future__ import annotations

from dataclasses import dataclass

from realtime_tts.text.spans import Piece

MAX_BREAK_SECONDS = 10.0
"""The most that all pauses of a turn may take together; what goes beyond is left out."""
SHORTEST_BREAK_SECONDS = 0.01
"""A shorter one is no pause, and must not part the speech."""


class Seam:
    """Parts the speech: the text behind it is an utterance of its own."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Break(Seam):
    """A pause in the speech."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Voicing:
    """How text is to be spoken, as its markup says; None is as the session says.

    `rate` and `volume` are factors: 1.2 is faster, or louder, by a fifth. `cue`: what a stage
    direction says of the manner, where no tag does; nobody is warned if it cannot be done.
    """

    voice: str | None = None
    language: str | None = None
    emotion: str | None = None
    cue: str | None = None
    rate: float | None = None
    volume: float | None = None


AS_THE_SESSION = Voicing()


@dataclass(frozen=True, slots=True)
class Change(Seam):
    """From here on the text is to be spoken like this."""

    voicing: Voicing


@dataclass(frozen=True, slots=True)
class SayAs:
    """A piece that is to be said as a thing of a certain kind: its characters, a date, an amount.

    `detail`: the format of a date, the currency of an amount.
    """

    kind: str
    piece: Piece
    detail: str = ""


Item = Piece | Seam | SayAs
"""What the speech text filter gives."""
