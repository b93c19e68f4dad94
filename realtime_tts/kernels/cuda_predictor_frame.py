"""The CUDA kernels of `predictor_frame.py`: a frame is one launch, of cuda/predictor_frame.cu for
few rows, and of cuda/predictor_batch.cu for many."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor

from realtime_tts.kernels.cuda_builds import PROGRAMS, Build, CudaBuilds
from realtime_tts.kernels.cuda_program import (
    addresses,
    decoder_settings,
    hopper_obstacle,
    pointer_fields,
    program_or_warning,
)
from realtime_tts.kernels.predictor_frame import FrameModel
from realtime_tts.kernels.sampling import FrameDraws

FEW_ROWS = MappingProxyType(
    {"FEW": 1, "WARPS": 8, "SPAN": 2, "RING": 10, "PACE": 2, "ASKER": 1, "TALL": 8}
)
"""How the kernel is built for one or two utterances (cuda/sizes.cuh).

There is room for RING units of weights, and PACE of them are loaded at a time."""
MANY_ROWS = MappingProxyType(
    {"FEW": 0, "WARPS": 8, "SPAN": 2, "RING": 7, "PACE": 1, "ASKER": 0, "TALL": 8}
)
"""How the kernel is built for three to eight utterances."""
_BATCH = {"BATCH": 1, "FEW": 0, "WARPS": 8, "SPAN": 1, "RING": 8, "PACE": 1, "ASKER": 0, "TALL": 16}


def batch(rows: int, shares: int, residual_shares: int) -> Build:
    """Return how the kernel for many utterances is built for up to `rows` of them.

    Thread blocks share the columns of a product: each has one of `shares` parts of the rows, or one
    of `residual_shares` where the residual is added.
    """
    macros = {"ROWS": rows, "SHARES": shares, "RESIDUAL_SHARES": residual_shares, "TOGETHER": 2}
    return Build(rows, "predictor_batch", MappingProxyType(_BATCH | macros))


BUILDS = (
    Build(2, "predictor_frame", FEW_ROWS),
    Build(8, "predictor_frame", MANY_ROWS),
    batch(16, 1, 2),
    batch(32, 1, 2),
    batch(64, 2, 4),
)
MOST_FRAME_ROWS = BUILDS[-1].most
"""The most utterances of a launch; with more, separate kernels are faster."""

_ROWS = 16  # of a pass of predictor_frame.cu; the first has two positions of each utterance
# Hidden, query heads, key heads, of a head, intermediate; codes, passes, positions.
_SIZES = (1024, 16, 8, 128, 3072, 2048, 15, 16)


class FrameArguments(ctypes.Structure):
    """The struct `Arguments` of the kernels."""

    _fields_ = (
        *pointer_fields("layers heads inputs norm cos sin x pages temperature top_k greedy"),
        *pointer_fields("uniform codes failed logits words rounds"),
        ("layer_stride", ctypes.c_int64),
        ("uniform_stride", ctypes.c_int64),
        ("slots", ctypes.c_int),
        ("eps", ctypes.c_float),
    )


def frame_settings(model: FrameModel, programs: int, build: Mapping[str, int]) -> dict[str, int]:
    """Return the macros of cuda/sizes.cuh for a model's sizes, with those of a build."""
    vocab, passes = len(model.heads[0]), len(model.heads)
    return decoder_settings(model, programs, _ROWS) | {"PASSES": passes, "VOCAB": vocab, **build}


class FrameTables:
    """Addresses of weights, and `words` int64 through which thread blocks exchange data."""

    def __init__(self, model: FrameModel, words: int) -> None:
        device = model.norm.device
        weights = [weight for layer in model.layers for weight in layer]
        self._layers = addresses(weights, device)
        self._heads = addresses(model.heads, device)
        self._inputs = addresses(model.inputs, device)
        self._words = torch.zeros(words, dtype=torch.int64, device=device)
        self._rounds = torch.zeros(1, dtype=torch.int32, device=device)

    def arguments(
        self,
        x: Tensor,
        model: FrameModel,
        pages: Tensor,
        draws: FrameDraws,
        codes: Tensor,
        failed: Tensor,
        logits: Tensor | None,
    ) -> FrameArguments:
        """Return the arguments of a launch for B rows. The tensors must live until it is over. x [2
        * B, h] and pages [layers, slots, 2, kv_heads, 16, D] bfloat16; codes [B, passes] int64 and
        failed [B] bool are written, and so are logits [passes, B, vocab] bfloat16 if given."""
        slots = len(codes)
        assert x.shape == (2 * slots, len(model.norm)) and x.is_contiguous()
        assert 0 < slots <= pages.shape[1] and pages[0].is_contiguous()
        assert x.dtype == pages.dtype == model.norm.dtype == torch.bfloat16
        assert pages.shape[4] == 16 and draws.uniform.stride(1) == 1
        assert all(each.is_contiguous() for each in (*draws[:3], model.cos, model.sin))
        given = (
            *(self._layers, self._heads, self._inputs, model.norm, model.cos, model.sin, x, pages),
            *(draws.temperature, draws.top_k, draws.greedy, draws.uniform, codes, failed),
        )
        return FrameArguments(
            *(tensor.data_ptr() for tensor in given),
            None if logits is None else logits.data_ptr(),
            self._words.data_ptr(),
            self._rounds.data_ptr(),
            pages.stride(0),
            draws.uniform.stride(0),
            slots,
            model.eps,
        )


class FrameProgram:
    """The launch for one model. Only one frame at a time may use it.

    Raises CudaError if the kernel cannot be built or loaded.
    """

    def __init__(self, model: FrameModel) -> None:
        self._model = model
        self._builds = CudaBuilds(
            BUILDS, partial(frame_settings, model, PROGRAMS), model.norm.device
        )
        kernels = {build.kernel for build in BUILDS}
        self._tables = {
            kernel: FrameTables(model, self._builds.constant(kernel, "words")) for kernel in kernels
        }

    def __call__(
        self, x: Tensor, pages: Tensor, draws: FrameDraws, logits: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw a frame like `plain_frame`: return codes [B, passes] int64, and which rows [B] bool
        failed.

        x [2 * B, h] and pages [layers, slots, 2, kv_heads, 16, D] bfloat16. Rows fail that have NaN
        or Inf among their logits; those go into `logits` [passes, B, vocab] bfloat16 if that is
        given.
        """
        rows = len(x) // 2
        codes = torch.empty(rows, len(self._model.heads), dtype=torch.long, device=x.device)
        failed = torch.empty(rows, dtype=torch.bool, device=x.device)
        tables = self._tables[self._builds.kernel(rows)]
        given = tables.arguments(x, self._model, pages, draws, codes, failed, logits)
        self._builds.launch(rows, given)
        return codes, failed


def frame_program(model: FrameModel) -> FrameProgram | None:
    """Return the program that makes this model's frames; None where separate kernels do.

    On a GPU, the reason is then logged.
    """
    return program_or_warning(
        lambda: FrameProgram(model), frame_obstacle(model), model.norm.is_cuda, "code predictor"
    )


def frame_obstacle(model: FrameModel) -> str | None:
    """Return why the kernel is not made for this model or its device; None if it is.

    It is made for the sizes of the released code predictor in bfloat16, and for GPUs of compute
    capability 9.0 (H100, H200) with at least 128 multiprocessors.
    """
    sizes = (*model.sizes, len(model.heads[0]), len(model.heads), len(model.cos))
    return hopper_obstacle(model.norm, PROGRAMS) or (
        None if sizes == _SIZES else "it has not the sizes of the released ones"
    )
