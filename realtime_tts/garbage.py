"""The garbage collector, told to leave alone what stays for good, and given little else to do."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import MethodType
from typing import ParamSpec, TypeVar, cast
from weakref import ref

P = ParamSpec("P")
R = TypeVar("R")


def calm_garbage_collector() -> None:
    """Keep the collector away from what stays for good. For the whole process; call it when loaded.

    A full collection stops all threads while it looks at every object: 60 ms with two hundred
    sessions, and several times that with a model's modules, is a late packet for everybody.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def weakly(method: Callable[P, R]) -> Callable[P, R]:
    """`method` for an object to give to its own parts, which must not keep it.

    Otherwise it and all its parts wait for the collector, which stops everybody for them: a hundred
    thousand objects after two thousand turns, and the next packets 0.1 s late. Only the object's
    own parts may call it, while the object is there.
    """
    assert isinstance(method, MethodType), "a bound method"
    function, owner = method.__func__, ref(method.__self__)

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return cast(R, function(owner(), *args, **kwargs))

    return call
