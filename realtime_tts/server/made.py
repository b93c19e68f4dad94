"""What an utterance has made: PCM, and what stands between its pieces."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple


class Mark(Enum):
    """What stands between pieces of PCM."""

    PAUSE = auto()
    """What an encoder holds so far leaves before it, where its packets may be cut."""
    END = auto()
    """No more sound of this segment."""


class Volume(NamedTuple):
    """The sound that follows is to be so many times as loud as the voice speaks."""

    factor: float


Made = list[bytes | Mark | Volume]
"""Sound that was made (s16le, 24 kHz, mono), in its order."""
