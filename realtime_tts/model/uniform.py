"""Random numbers without a generator: a hash of (seed, frame, codebook).

A draw then depends on nothing but its own utterance: not on the batch, the slot, the device, or
how many numbers anyone else has used. Integer arithmetic only, so every device agrees.

The hash is the finaliser of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
generators", OOPSLA 2014), applied in turn to seed, frame and codebook.
"""

from __future__ import annotations

from torch import Tensor

_WORD = 1 << 64
_BITS = 23  # (k + 0.5) / 2^23 is exact in float32, never 0 and never 1


def _signed(value: int) -> int:
    """The int64 with the same 64 bits."""
    value %= _WORD
    return value - _WORD if value >= _WORD // 2 else value


_GAMMA = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)


def seed_key(seed: int) -> int:
    """A seed of any size as the int64 that `uniforms` expects; similar seeds end far apart.

    In Python's integers: a tensor of one number costs thirty times as much, for every turn.
    """
    word = (seed + _GAMMA) % _WORD
    word = (word ^ (word >> 30)) * (_FIRST % _WORD) % _WORD
    word = (word ^ (word >> 27)) * (_SECOND % _WORD) % _WORD
    return _signed(word ^ (word >> 31))


def uniforms(keys: Tensor, frames: Tensor, codebooks: Tensor) -> Tensor:
    """Float32 in (0, 1), [B, C], for keys [B], frames [B], codebooks [C], all int64."""
    rows = _mix(keys + (frames + 1) * _GAMMA)
    words = _mix(rows.unsqueeze(-1) + (codebooks + 1) * _GAMMA)
    return (_shift(words, 64 - _BITS).float() + 0.5) * 2.0**-_BITS


def _mix(words: Tensor) -> Tensor:
    words = (words ^ _shift(words, 30)) * _FIRST  # int64 products wrap, as wanted
    words = (words ^ _shift(words, 27)) * _SECOND
    return words ^ _shift(words, 31)


def _shift(words: Tensor, bits: int) -> Tensor:
    """Logical right shift; torch's is arithmetic."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)
