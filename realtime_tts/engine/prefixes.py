"""Keys and values of prompt heads: every utterance of a voice begins with the same positions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from torch import Tensor


class PrefixCache:
    """The heads used last, up to `positions` in all: [layers, 2, kv_heads, n, D] by key."""

    def __init__(self, positions: int) -> None:
        self._positions, self._used = positions, 0
        self._kept: OrderedDict[Hashable, Tensor] = OrderedDict()
        self.hits = self.misses = 0

    def get(self, key: Hashable) -> Tensor | None:
        kv = self._kept.get(key)
        if kv is None:
            self.misses += 1
            return None
        self.hits += 1
        self._kept.move_to_end(key)
        return kv

    def put(self, key: Hashable, kv: Tensor) -> None:
        """Keep `kv`, and as many of the others as there is room for; one that is too long for all
        the room is not kept."""
        length = kv.shape[3]
        if key in self._kept or length > self._positions:
            return
        self._kept[key] = kv
        self._used += length
        while self._used > self._positions:
            _, oldest = self._kept.popitem(last=False)
            self._used -= oldest.shape[3]
