"""Chooses between an operation's two forms: the Triton kernel or plain torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from typing import Generic, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


@lru_cache(maxsize=1)
def triton_available() -> bool:
    """Return whether Triton is installed. It comes with builds of torch for GPUs, not for CPUs."""
    return find_spec("triton") is not None


def _interpreted() -> bool:
    """Return whether Triton interprets kernels on the CPU, a value at a time: for tests."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def runs_triton(first: Tensor) -> bool:
    """Return whether kernels whose first argument this is run Triton, rather than plain torch."""
    return triton_available() and (first.is_cuda or _interpreted())


class Kernel(Generic[P, R]):
    """A plain function that calls its Triton kernel instead where its first argument is on a GPU.

    The kernel has the same name and signature, in the module with the plain function's name after
    `triton_`, which is imported when first needed, since it needs Triton. The first argument must
    be a tensor, given by position.
    """

    def __init__(self, plain: Callable[P, R]) -> None:
        update_wrapper(self, plain)
        self.plain = plain
        package, _, module = plain.__module__.rpartition(".")
        self._triton_name = f"{package}.triton_{module}", plain.__name__
        self._triton: Callable[P, R] | None = None

    @property
    def triton(self) -> Callable[P, R]:
        """The Triton kernel. Raises ImportError without Triton."""
        if self._triton is None:
            module, name = self._triton_name
            self._triton = getattr(import_module(module), name)
        assert self._triton is not None
        return self._triton

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        first = args[0]
        assert isinstance(first, Tensor), "the first argument is a tensor, given by position"
        if not runs_triton(first):
            return self.plain(*args, **kwargs)
        if first.is_cuda:
            # Triton launches on the current device, which need not be the tensor's.
            with torch.cuda.device(first.device):
                return self.triton(*args, **kwargs)
        return self.triton(*args, **kwargs)
