"""How much of a GPU's memory keys and values get, and how many slots fit into it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from realtime_tts.errors import ConfigError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_MARGIN_SHARE = 0.1
_PROGRAM_BYTES, _PROGRAM_BYTES_A_SLOT, _PROGRAM_SLOTS = 2**30, 48 * 2**20, 64
"""Captured programs take more memory the more rows they have, up to so many slots: from there on
the codec's, which are by far the largest, grow no more. 4 GiB then."""

USUAL_POSITIONS = 512
"""Positions that each slot should find: a prompt and half a minute of speech. Who needs more takes
what others leave; when nothing is left, rows are swapped out."""

MOST_SLOTS = 512
"""As many turns as an H200 is known to speak without a gap. More are for `--slots` to say."""

_SLOTS = (512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)


@dataclass(frozen=True, slots=True)
class KVMemory:
    """How much of a device's memory keys and values get.

    `size` is in bytes; `share` is of what is free once the weights are loaded. Without either it is
    all that is free but for a margin for captured programs and the codec: a tenth of the device,
    and at least what the programs of so many slots take, 4 GiB from 64 slots on.
    """

    size: int | None = None
    share: float | None = None

    @classmethod
    def parse(cls, text: str) -> KVMemory:
        """Read "40GiB", "40000000000", "80%" or "0.8". Raises ConfigError."""
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|[A-Za-z]*)\s*", text)
        unit = found.group(2).upper() if found else "?"
        if found is None or unit not in (*_UNITS, "%"):
            raise ConfigError(f"memory is given like 40GiB, 80% or 0.8; got {text!r}")
        number = float(found.group(1))
        if unit == "%" or (unit == "" and number <= 1):
            share = number / 100 if unit == "%" else number
            if not 0 < share <= 1:
                raise ConfigError(f"a share of memory is above 0 and at most all; got {text!r}")
            return cls(share=share)
        return cls(size=int(number * _UNITS[unit]))

    def bytes_of(self, free: int, total: int, slots: int) -> int:
        """The bytes on a device with so many bytes `free` of `total`. Raises ConfigError."""
        if self.size is not None:
            size = self.size
        elif self.share is not None:
            size = int(self.share * free)
        else:
            programs = _PROGRAM_BYTES + _PROGRAM_BYTES_A_SLOT * min(slots, _PROGRAM_SLOTS)
            size = free - max(int(_MARGIN_SHARE * total), programs)
        if not 0 < size <= free:
            raise ConfigError(
                f"{max(size, 0) / 2**30:.1f} GiB for keys and values do not fit into the "
                f"{free / 2**30:.1f} GiB that the device has free: give --kv-memory another value"
            )
        return size


@dataclass(frozen=True, slots=True)
class Footprint:
    """What turns take of a GPU beside the weights.

    `position`: bytes of one position's keys and values. `slot`: bytes that the codec and the code
    predictor keep for a slot. `longest`: positions of the longest turn, which has to fit alone.
    """

    position: int
    slot: int
    longest: int


@dataclass(frozen=True, slots=True)
class Room:
    """What an engine gets of a GPU; `kv_bytes` for keys and values of all slots together."""

    slots: int
    kv_bytes: int


def room_for(
    footprint: Footprint, memory: KVMemory, free: int, total: int, slots: int, *, fit: bool
) -> Room:
    """Share out a GPU that has `free` of its `total` bytes left, with the weights on it.

    `fit`: no more slots than find their usual number of positions, one at least. Raises
    ConfigError.
    """
    for count in [slots, *(less for less in _SLOTS if less < slots)] if fit else []:
        left = free - count * footprint.slot
        try:
            kv_bytes = memory.bytes_of(left, total, count)
        except ConfigError:
            continue
        if kv_bytes >= footprint.position * max(count * USUAL_POSITIONS, footprint.longest):
            return Room(count, kv_bytes)
    count = 1 if fit else slots
    return Room(count, memory.bytes_of(free - count * footprint.slot, total, count))
