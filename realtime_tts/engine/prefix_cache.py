"""Which prompt prefixes are kept on the device, and where."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from torch import Tensor

from realtime_tts.kernels import triton_available

PREFIX_POSITIONS = 256, 2048
"""The fewest and the most positions of all kept prefixes: two dozen voices, and two hundred, or a
few long instructions."""

_SHARE = 32  # positions for turns, for each that is kept


def prefix_positions(kv_positions: int) -> int:
    """Return the positions that are kept for prompt prefixes beside `kv_positions` for turns.
    Without Triton they are few, because each start then looks at all of them."""
    fewest, most = PREFIX_POSITIONS
    return max(fewest, min(most, kv_positions // _SHARE)) if triton_available() else fewest


class PrefixCache:
    """Keys and values of prompt prefixes: all utterances of a voice begin with the same ones.

    The most recently used are kept, as many as fit into one tensor [layers, 2, kv_heads, positions,
    D], where captured programs find them.
    """

    def __init__(self, keys_values: Tensor) -> None:
        self._keys_values, self._positions = keys_values, keys_values.shape[3]
        self._kept: OrderedDict[Hashable, range] = OrderedDict()

    def get(self, key: Hashable) -> range | None:
        """Return the positions of the prefix kept for `key`, or None; it counts as used now."""
        span = self._kept.get(key)
        if span is not None:
            self._kept.move_to_end(key)
        return span

    def put(self, key: Hashable, keys_values: Tensor) -> None:
        """Keep a prefix [layers, 2, kv_heads, n, D], and drop the least recently used ones until
        there is a place for it. One that is longer than the whole cache is not kept."""
        length = keys_values.shape[3]
        if key in self._kept or length > self._positions:
            return
        while (first := self._gap(length)) is None:
            self._kept.popitem(last=False)
        self._kept[key] = range(first, first + length)
        self._keys_values[:, :, :, first : first + length].copy_(keys_values)

    def _gap(self, length: int) -> int | None:
        """Return the first position of a free span of this length, if there is one."""
        end = 0
        for span in sorted(self._kept.values(), key=lambda span: span.start):
            if span.start - end >= length:
                return end
            end = span.stop
        return end if self._positions - end >= length else None
