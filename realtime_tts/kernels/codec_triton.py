"""The codec's Triton kernels under one name; `codec_plain.py` says what each computes.

Imports triton, which may be absent: ask `codec_kernels` for the module that fits a device.
"""

from realtime_tts.kernels.codec_output import output_conv, pcm
from realtime_tts.kernels.codec_rows import (
    add_norm,
    advance,
    codebook_sum,
    depthwise_norm,
    swiglu,
)
from realtime_tts.kernels.snake_conv import conv, residual_unit
from realtime_tts.kernels.snake_unfold import unfold
from realtime_tts.kernels.window_attention import window_attention

__all__ = [
    "add_norm",
    "advance",
    "codebook_sum",
    "conv",
    "depthwise_norm",
    "output_conv",
    "pcm",
    "residual_unit",
    "swiglu",
    "unfold",
    "window_attention",
]
