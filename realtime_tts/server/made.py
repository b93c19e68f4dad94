"""What an utterance has made: PCM, and marks between its pieces."""

from __future__ import annotations

from enum import Enum, auto


class Mark(Enum):
    """What stands between pieces of PCM."""

    CUT = auto()
    """A pause: what an encoder holds so far leaves before it, where its packets may be cut."""
    END = auto()
    """No more sound of this segment."""


Made = list[bytes | Mark]
"""Sound that was made (s16le, 24 kHz, mono), in its order."""
