"""Fused operations of a decode step, each written twice: in plain torch and as a Triton kernel.

    total, x = add_rms_norm(x, residual, weight, eps)     # Triton on a GPU, plain torch elsewhere
    add_rms_norm.plain(x, residual, weight, eps)          # either of them, by name
    add_rms_norm.triton(x, residual, weight, eps)

All take and return tensors and read nothing on the host, so that a CUDA graph can capture them:
shapes and launch sizes follow from the shapes of the arguments, never from their values. Sums are
float32 whatever the tensors are, and every result is rounded once, at its end. A first call
compiles the kernel, which a capture does not allow: run everything once before capturing it.

A whole frame of the code predictor (`frame_program`) and a whole position of the talker
(`step_program`) are kernels in CUDA C++, whose thread blocks stay resident and pass from phase to
phase together.

Products (`split_k_product`, `swiglu_product`) run on Triton where `few_rows` says so, and SwiGLU's
where `gates_suffice` does, too; elsewhere the caller multiplies.

Triton need not be installed. Arguments named alike mean the same everywhere:

    pages    [pages, 2, kv_heads, page_size, D]: one layer's keys (0) and values (1). Page 0 is
             the scratch page: padding rows write there, and it is never read.
    tables   [slots + 1, max_pages] int32: the pages of a slot, in order. The last row is zeros: it
             belongs to the scratch slot, which is the slot of padding rows.
    slots, positions, starts, lengths   [B], int32 or int64

*Float* in a docstring is float32, bfloat16 or float16: one type for all tensors of a call that are
described so, and for results whose type is not given.
"""

from realtime_tts.kernels.alignment import MOST_TEXT, most_seen
from realtime_tts.kernels.attention import decode_attention, prompt_attention
from realtime_tts.kernels.cuda_predictor_frame import MOST_FRAME_ROWS, FrameProgram, frame_program
from realtime_tts.kernels.cuda_talker_step import MOST_STEP_ROWS, StepProgram, step_program
from realtime_tts.kernels.decoder import DecoderModel, LayerWeights
from realtime_tts.kernels.dispatch import Kernel, triton_available
from realtime_tts.kernels.elementwise import add_rms_norm, rms_norm, swiglu
from realtime_tts.kernels.first_codes import first_codes
from realtime_tts.kernels.kept_frames import keep_frame
from realtime_tts.kernels.predictor_frame import FrameModel
from realtime_tts.kernels.products import (
    few_rows,
    gates_suffice,
    split_k_product,
    swiglu_product,
)
from realtime_tts.kernels.sampling import FrameDraws, sample
from realtime_tts.kernels.storing import rope_and_store, store_prefix

__all__ = [
    "MOST_FRAME_ROWS",
    "MOST_STEP_ROWS",
    "MOST_TEXT",
    "DecoderModel",
    "FrameDraws",
    "LayerWeights",
    "FrameModel",
    "FrameProgram",
    "Kernel",
    "StepProgram",
    "add_rms_norm",
    "decode_attention",
    "few_rows",
    "first_codes",
    "frame_program",
    "gates_suffice",
    "keep_frame",
    "most_seen",
    "prompt_attention",
    "rms_norm",
    "rope_and_store",
    "sample",
    "split_k_product",
    "step_program",
    "store_prefix",
    "swiglu",
    "swiglu_product",
    "triton_available",
]
