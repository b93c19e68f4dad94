"""How much of a device's memory keys and values get."""

from __future__ import annotations

import re
from dataclasses import dataclass

from realtime_tts.errors import ConfigError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_MARGIN_SHARE = 0.1
_MARGIN_LEAST = 4 * 2**30


@dataclass(frozen=True, slots=True)
class KVMemory:
    """How much of a device's memory keys and values get.

    `size` is in bytes; `share` is of what is free once the weights are loaded. Without either it is
    all that is free but for a margin, a tenth of the device and 4 GiB at least, for captured
    programs and the codec.
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

    def bytes_of(self, free: int, total: int) -> int:
        """The bytes on a device with so many bytes `free` of `total`. Raises ConfigError."""
        if self.size is not None:
            size = self.size
        elif self.share is not None:
            size = int(self.share * free)
        else:
            size = free - max(int(_MARGIN_SHARE * total), _MARGIN_LEAST)
        if not 0 < size <= free:
            raise ConfigError(
                f"{max(size, 0) / 2**30:.1f} GiB for keys and values do not fit into the "
                f"{free / 2**30:.1f} GiB that the device has free: give --kv-memory another value"
            )
        return size
