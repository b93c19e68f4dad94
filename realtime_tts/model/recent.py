"""The last few of things that take time to make and room to keep."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """Keeps what was asked for last, `most` values; use from one thread at a time."""

    def __init__(self, most: int) -> None:
        assert most > 0, "room for nothing"
        self._most = most
        self._kept: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """The value kept for `key`, or the one that `make` makes; what that raises is passed on."""
        if key not in self._kept:
            value = make()
            self._kept[key] = value
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]
