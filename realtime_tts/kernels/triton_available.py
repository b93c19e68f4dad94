"""Whether Triton's kernels can run on a device. Triton is optional: a CPU does without."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import torch


@cache
def triton_installed() -> bool:
    return find_spec("triton") is not None


def triton_runs_on(device: torch.device) -> bool:
    """On CUDA; elsewhere only in Triton's interpreter, which TRITON_INTERPRET=1 turns on.

    The interpreter has to be turned on before a kernel module is imported.
    """
    if not triton_installed():
        return False
    return device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
