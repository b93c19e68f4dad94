"""How a GPU's memory is divided: among engines, slots, and keys and values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from realtime_tts.errors import ConfigError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_MARGIN_SHARE = 0.1
CONTEXT_BYTES = 640 * 2**20
"""Bytes of a GPU that CUDA and the loaded kernels take in addition to torch's allocations."""
_PROGRAM_BYTES, _PROGRAM_BYTES_A_SLOT, _PROGRAM_SLOTS = 3 * 2**29, 48 * 2**20, 64
"""Captured programs take more memory the more rows they have, up to `_PROGRAM_SLOTS` slots: beyond
that, the codec's, which are by far the largest, grow no more. They take 4.5 GiB then: an H200 was
seen to keep 3 GiB of it, and to need more for a moment."""

USUAL_POSITIONS = 512
"""Positions that each slot should find: a prompt and half a minute of speech. Longer turns use what
others leave; when nothing is left, rows are swapped out."""

MOST_SLOTS = 512
"""The most turns that an H200 is known to speak without a gap. `--slots` may ask for more."""

_SLOTS = (512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """How much of a GPU an engine may take in all: `size` in bytes, or `share` of the GPU."""

    size: int = 0
    share: float = 1.0

    @classmethod
    def parse(cls, text: str) -> MemoryBudget:
        """Parse "8GiB", "40000000000", "80%" or "0.8". Raises ConfigError."""
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|[A-Za-z]*)\s*", text)
        unit = found.group(2).upper() if found else "?"
        if found is None or unit not in (*_UNITS, "%"):
            raise ConfigError(f"memory is given like 8GiB, 80% or 0.8; got {text!r}")
        number = float(found.group(1))
        if unit == "%" or (unit == "" and number <= 1):
            share = number / 100 if unit == "%" else number
            if not 0 < share <= 1:
                raise ConfigError(f"a share of memory is above 0 and at most all; got {text!r}")
            return cls(share=share)
        size = int(number * _UNITS[unit])
        if size == 0:
            raise ConfigError(f"memory is at least a byte; got {text!r}")
        return cls(size=size)

    def bytes_of(self, total: int) -> int:
        """Return the budget in bytes on a GPU of `total` bytes. Raises ConfigError for less."""
        if self.size > total:
            raise ConfigError(
                f"the GPU has {total / 2**30:.1f} GiB, which is less than the "
                f"{self.size / 2**30:.1f} GiB of --gpu-memory"
            )
        return self.size or int(self.share * total)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What turns take of a GPU in addition to the weights.

    `position`: bytes of one position's keys and values. `slot`: bytes that the codec and the code
    predictor keep for a slot. `longest`: positions of the longest turn, which has to fit alone.
    """

    position: int
    slot: int
    longest: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How many slots an engine gets, and `kv_bytes` for keys and values of all slots together."""

    slots: int
    kv_bytes: int


def plan_memory(
    footprint: Footprint, free: int, total: int, slots: int, *, fit: bool
) -> MemoryPlan:
    """Divide a GPU, or a budget of it, with `free` of its `total` bytes left after loading the
    weights.

    Keys and values get what is free minus a margin for captured programs, the codec and kept prompt
    prefixes: a tenth of the total, and at least what the programs of this many slots take, 4.5 GiB
    from 64 slots on.
    `fit`: use fewer slots if they would not find their usual number of positions, one at least.
    Raises ConfigError if nothing is left.
    """
    smaller = [less for less in _SLOTS if less < slots] if fit else []
    for count in (slots, *smaller):
        programs = _PROGRAM_BYTES + _PROGRAM_BYTES_A_SLOT * min(count, _PROGRAM_SLOTS)
        kv_bytes = free - count * footprint.slot - max(int(_MARGIN_SHARE * total), programs)
        usual = footprint.position * max(count * USUAL_POSITIONS, footprint.longest)
        if kv_bytes > 0 and (kv_bytes >= usual or count == 1 or not fit):
            return MemoryPlan(count, kv_bytes)
    raise ConfigError(
        f"nothing is left for keys and values of {count} slots: weights and other programs leave "
        f"{free / 2**30:.1f} GiB of {total / 2**30:.1f}, of which captured programs need "
        f"{programs / 2**30:.1f}. Give a larger --gpu-memory, fewer --slots, or a smaller model"
    )
