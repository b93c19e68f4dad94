"""What a text asks of the voice besides its words: pauses, another voice, a way to speak."""

from __future__ import annotations

from dataclasses import dataclass

from realtime_tts.text.spans import Piece

MAX_BREAK_SECONDS = 10.0
"""The most seconds that all pauses of a turn may take together; the excess is left out."""
SHORTEST_BREAK_SECONDS = 0.01
"""Seconds below which a break is ignored, so that it does not split the speech."""


class Seam:
    """A boundary in the speech: the text behind it is an utterance of its own."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Break(Seam):
    """A pause in the speech."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Voicing:
    """How text must be spoken according to its markup. None: as the session is set.

    `rate` and `volume` are factors: 1.2 is faster, or louder, by a fifth. `cue`: the style that a
    stage direction asks for, where no tag does; the client is not warned if the voice cannot do it.
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
    """A change of voicing for the text behind it."""

    voicing: Voicing


@dataclass(frozen=True, slots=True)
class SayAs:
    """A piece of text to say as a certain kind of thing: its characters, a date, an amount.

    `detail`: the format of a date, the currency of an amount.
    """

    kind: str
    piece: Piece
    detail: str = ""


Item = Piece | Seam | SayAs
"""What the speech text filter produces."""
