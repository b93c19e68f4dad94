"""Codes of new frames, and the text tokens they speak, until they leave with their sound.

With them, another engine can continue the utterance (`Spoken` in link.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int16]
"""Codes of frames [frames, 16], or the text token that each frame speaks [frames, 1]."""

_NUMBER = np.dtype("<i2")


def packed(codes: NDArray[np.int16]) -> bytes:
    """Pack the numbers of some frames into bytes: two for each number."""
    return codes.astype(_NUMBER, copy=False).tobytes()


def packed_rows(codes: NDArray[np.int16]) -> list[bytes]:
    """Pack each row of codes [n, groups], as `packed` does: a call for each takes longer."""
    data, size = packed(codes), codes.shape[1] * _NUMBER.itemsize
    return [data[start : start + size] for start in range(0, len(data), size)]


def packed_number(number: int) -> bytes:
    """Pack the single number of a single frame, as `packed` does for many."""
    return number.to_bytes(_NUMBER.itemsize, "little", signed=True)


def last_number(data: bytes) -> int:
    """Return the last number that was packed."""
    return int.from_bytes(data[-_NUMBER.itemsize :], "little", signed=True)


def unpacked(data: bytes, groups: int) -> Codes:
    """Return the numbers [frames, groups] that `packed` has packed."""
    return np.frombuffer(data, _NUMBER).reshape(-1, groups)


@dataclass(slots=True)
class _Frames:
    """Numbers of frames that were not taken yet; the first `sounded` ones left the codec."""

    codes: bytearray = field(default_factory=bytearray)
    sounded: int = 0


class MadeCodes:
    """Numbers of frames by utterance. A frame has `groups` numbers and `samples` samples."""

    def __init__(self, groups: int, samples: int) -> None:
        self._bytes, self._samples = groups * _NUMBER.itemsize, samples
        self._frames: dict[str, _Frames] = {}

    def begin(self, id: str) -> None:
        """Add a new utterance."""
        self._frames[id] = _Frames()

    def end(self, id: str) -> None:
        """Remove an utterance that is over. Idempotent."""
        self._frames.pop(id, None)

    def step(self, codes: Mapping[str, bytes], decoded: Mapping[str, int]) -> None:
        """Record a step: the packed numbers of its frames, and how many samples left the codec."""
        frames = self._frames
        for id, made in codes.items():
            frames[id].codes += made
        for id, samples in decoded.items():
            frames[id].sounded += samples // self._samples

    def take(self, id: str) -> bytes:
        """Return the numbers of all frames that left the codec and were not taken before."""
        frames = self._frames[id]
        size, frames.sounded = frames.sounded * self._bytes, 0
        taken = bytes(frames.codes[:size])
        del frames.codes[:size]
        return taken
