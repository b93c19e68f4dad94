"""Which implementation of the codec's kernels a device gets."""

from __future__ import annotations

from types import ModuleType

import torch

from realtime_tts.kernels import codec_plain
from realtime_tts.kernels.triton_available import triton_runs_on


def codec_kernels(device: torch.device) -> ModuleType:
    """`codec_triton` where Triton runs, else `codec_plain`: the same functions."""
    if not triton_runs_on(device):
        return codec_plain
    from realtime_tts.kernels import codec_triton

    return codec_triton
