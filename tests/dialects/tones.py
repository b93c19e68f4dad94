"""What the tests' engine makes, in bytes of 24 kHz s16le."""

from __future__ import annotations

FRAME = 3_840
"""The speech of a token of one byte."""
TENTH = bytes(4_800)
"""The silence for a text with nothing to speak."""
