"""G.711: 16-bit samples to the eight bits of µ-law and A-law, by table.

ITU-T G.711 (11/1988): table 2a for µ-law, whose input has 14 bits, table 1a for A-law, whose input
has 13. How 16 bits are reduced to these is not in the standard: the lowest are cut off, rounding
down, as in Sun's g711.c and in Python's former audioop. A table has an entry for each 16-bit
sample, so that encoding is one look-up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.uint8]

_BIAS = 33  # µ-law: makes every segment begin at a power of two, 32 * 2 ** segment
_LOUDEST = 8_158  # µ-law: 8,159 with the bias is the end of the last segment


def _mulaw_table() -> Table:
    samples = np.arange(-32_768, 32_768, dtype=np.int32) >> 2
    biased = np.minimum(np.abs(samples), _LOUDEST) + _BIAS
    segment = np.floor(np.log2(biased)).astype(np.int32) - 5
    step = (biased >> (segment + 1)) & 0x0F
    code = ~(segment << 4 | step) & 0x7F  # sent inverted, so that silence has many ones
    table: Table = np.where(samples < 0, code, code | 0x80).astype(np.uint8)
    return table


def _alaw_table() -> Table:
    samples = np.arange(-32_768, 32_768, dtype=np.int32) >> 4
    # One's complement: zero belongs to the positive half, -1 is its mirror image.
    size = np.where(samples < 0, ~samples, samples)
    segment = np.maximum(np.floor(np.log2(np.maximum(size, 1))).astype(np.int32) - 3, 0)
    code = segment << 4 | size >> np.maximum(segment - 1, 0) & 0x0F
    table: Table = np.where(samples < 0, code ^ 0x55, code ^ 0xD5).astype(np.uint8)
    return table


# By the sample's bits read as an unsigned number, so that no sample needs an addition.
_MULAW, _ALAW = (np.roll(table, -32_768) for table in (_mulaw_table(), _alaw_table()))


def mulaw(pcm: bytes) -> bytes:
    """Encode `pcm` (s16le) as µ-law, one byte for each sample."""
    codes: Table = _MULAW[np.frombuffer(pcm, dtype="<u2")]
    return codes.tobytes()


def alaw(pcm: bytes) -> bytes:
    """Encode `pcm` (s16le) as A-law, one byte for each sample."""
    codes: Table = _ALAW[np.frombuffer(pcm, dtype="<u2")]
    return codes.tobytes()
