"""The number that a draw takes: a hash of (seed, frame, codebook).

A draw then depends on nothing but its own utterance: not on the batch, the slot, the device, or how
many numbers others have used. Integer arithmetic only, so every device agrees. The hash is the
finaliser of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
OOPSLA 2014), applied in turn to seed, frame and codebook.
"""

from __future__ import annotations

from torch import Tensor

_WORD = 1 << 64
_BITS = 23  # (k + 0.5) / 2^23 is exact in float32, never 0 and never 1


def _signed(value: int) -> int:
    """Return the int64 with the same 64 bits."""
    value %= _WORD
    return value - _WORD if value >= _WORD // 2 else value


GAMMA = _signed(0x9E3779B97F4A7C15)
FIRST = _signed(0xBF58476D1CE4E5B9)
SECOND = _signed(0x94D049BB133111EB)


def seed_key(seed: int) -> int:
    """Return a seed of any size as the int64 that `uniforms` expects; similar seeds become far
    apart.

    This uses Python's integers: a tensor of one number costs thirty times as much, for every turn.
    """
    word = (seed + GAMMA) % _WORD
    word = (word ^ (word >> 30)) * (FIRST % _WORD) % _WORD
    word = (word ^ (word >> 27)) * (SECOND % _WORD) % _WORD
    return _signed(word ^ (word >> 31))


def uniforms(keys: Tensor, frames: Tensor, codebooks: Tensor) -> Tensor:
    """Return float32 in (0, 1), [B, C], for keys [B], frames [B] and codebooks [C], all int64."""
    rows = _mix(keys + (frames + 1) * GAMMA)
    words = _mix(rows.unsqueeze(-1) + (codebooks + 1) * GAMMA)
    return (_shift(words, 64 - _BITS).float() + 0.5) * 2.0**-_BITS


def _mix(words: Tensor) -> Tensor:
    words = (words ^ _shift(words, 30)) * FIRST  # int64 products wrap, as wanted
    words = (words ^ _shift(words, 27)) * SECOND
    return words ^ _shift(words, 31)


def _shift(words: Tensor, bits: int) -> Tensor:
    """Shift right logically; torch's shift is arithmetic."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)
