"""Float samples to signed 16-bit little-endian PCM: the rule by which sound is quantised.

The official package returns float32 and leaves quantisation to its caller, so the rule is ours:
clip to [-1, 1], scale by 32,767 on both sides of zero, round half to even. A sample s read back as
s / 32767 is within half a step (1.6e-5) of the float, and silence stays exactly zero. Writing the
same floats with libsndfile gives values at most two steps away: it scales by 32,768 and floors.
On a GPU, `kernels/codec_output.py` follows the same rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FULL_SCALE = 32_767
BYTES_PER_SAMPLE = 2


def quantised(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """Return `samples` (any shape, finite, clipped to [-1, 1]) as little-endian int16."""
    scaled = np.clip(samples, -1.0, 1.0)
    scaled *= FULL_SCALE
    np.rint(scaled, out=scaled)
    return scaled.astype("<i2")


def to_s16le(samples: NDArray[np.float32]) -> bytes:
    """Return the PCM of `samples` (shape [n], finite, nominally in [-1, 1]; louder is clipped)."""
    return quantised(samples).tobytes()


def from_s16le(pcm: bytes) -> NDArray[np.float32]:
    """Return the floats that `to_s16le` would turn into `pcm`; whole samples only."""
    return np.frombuffer(pcm, dtype="<i2").astype(np.float32) / np.float32(FULL_SCALE)
