"""What frames are on its way to the front: it leaves with the sound that was made of them.

These are their codes, and the tokens of the text that they speak. Whoever has them can let another
engine go on with the utterance (`Spoken` in link.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int16]
"""Of frames that were made: [frames, 16]; or [frames, 1], the token that each speaks."""

_NUMBER = np.dtype("<i2")


def packed(codes: NDArray[np.int16]) -> bytes:
    """Numbers of some frames as bytes: two for each."""
    return codes.astype(_NUMBER, copy=False).tobytes()


def packed_number(number: int) -> bytes:
    """The same of one frame with one number."""
    return number.to_bytes(_NUMBER.itemsize, "little", signed=True)


def unpacked(data: bytes, groups: int) -> Codes:
    """What `packed` made of frames of `groups` numbers each."""
    return np.frombuffer(data, _NUMBER).reshape(-1, groups)


def with_tokens(codes: bytes, tokens: bytes) -> bytes:
    """Packed codes, each frame's with the token that it speaks behind them, where that is told."""
    if not tokens:
        return codes
    groups = len(codes) // len(tokens)
    return packed(np.hstack((unpacked(codes, groups), unpacked(tokens, 1))))


def without_tokens(data: bytes, groups: int) -> tuple[bytes, bytes]:
    """The packed codes and tokens of which `with_tokens` has made this."""
    frames = unpacked(data, groups + 1)
    return packed(frames[:, :groups]), packed(frames[:, groups:])


@dataclass(slots=True)
class _Frames:
    """Numbers of frames that nobody was told of; the first `sounded` of them were through the
    codec."""

    codes: bytearray = field(default_factory=bytearray)
    sounded: int = 0


class MadeCodes:
    """Of every utterance, by id. `groups` numbers are a frame, `samples` its sound."""

    def __init__(self, groups: int, samples: int) -> None:
        self._bytes, self._samples = groups * _NUMBER.itemsize, samples
        self._frames: dict[str, _Frames] = {}

    def begin(self, id: str) -> None:
        """A new utterance."""
        self._frames[id] = _Frames()

    def end(self, id: str) -> None:
        """It is over. Idempotent."""
        self._frames.pop(id, None)

    def step(self, codes: Mapping[str, bytes], decoded: Mapping[str, int]) -> None:
        """A step made a frame of these numbers, and so many samples left the codec."""
        frames = self._frames
        for id, made in codes.items():
            frames[id].codes += made
        for id, samples in decoded.items():
            frames[id].sounded += samples // self._samples

    def take(self, id: str) -> bytes:
        """Those of all frames that were through the codec and were not taken before."""
        frames = self._frames[id]
        size, frames.sounded = frames.sounded * self._bytes, 0
        taken = bytes(frames.codes[:size])
        del frames.codes[:size]
        return taken
