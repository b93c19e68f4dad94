"""A position of the talker for a few rows, in one launch (cuda/talker_step.cu).

With separate kernels a position of one row is 280 launches that take more than twice as long as
reading their weights. The reference implementation is `decoder.plain_layers`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
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
from realtime_tts.kernels.decoder import DecoderModel

FEW_ROWS = MappingProxyType(
    {"FEW": 1, "WARPS": 8, "SPAN": 1, "RING": 11, "PACE": 4, "ASKER": 1, "TALL": 16}
)
"""How the kernel is built for up to four rows (cuda/sizes.cuh)."""
MANY_ROWS = MappingProxyType(
    {"FEW": 0, "WARPS": 8, "SPAN": 2, "RING": 5, "PACE": 1, "ASKER": 0, "TALL": 16}
)
"""How the kernel is built for five to eight rows."""
BUILDS = Build(4, "talker_step", FEW_ROWS), Build(8, "talker_step", MANY_ROWS)
MOST_STEP_ROWS = BUILDS[-1].most
"""The most rows of a launch; more rows use separate kernels."""

# Hidden, query heads, key heads, of a head, intermediate.
_SIZES = (2048, 16, 8, 128, 6144)


class StepArguments(ctypes.Structure):
    """The struct `Arguments` of the kernel."""

    _fields_ = (
        *pointer_fields("layers norm cos sin x out pages tables slots positions words partials"),
        *pointer_fields("rounds queries"),
        ("watched", ctypes.c_uint64),
        ("layer_stride", ctypes.c_int64),
        ("table_stride", ctypes.c_int),
        ("rows", ctypes.c_int),
        ("eps", ctypes.c_float),
    )


def step_settings(model: DecoderModel, programs: int, build: Mapping[str, int]) -> dict[str, int]:
    """Return the macros of cuda/sizes.cuh for a model's sizes, with those of a build."""
    return decoder_settings(model, programs, MOST_STEP_ROWS) | {"PASSES": 1, "VOCAB": 0, **build}


class StepTables:
    """Addresses of weights, and memory through which thread blocks exchange data."""

    def __init__(
        self,
        model: DecoderModel,
        programs: int,
        row_words: int,
        partial_words: int,
        watched: Sequence[int] = (),
    ) -> None:
        """`watched`: numbers of the layers whose queries are kept."""
        assert all(layer < 64 for layer in watched), "layers are bits of a number"
        device, (_, heads, _, dim, _) = model.norm.device, model.sizes
        self._watched = tuple(watched)
        shape = (len(model.layers) if watched else 0), MOST_STEP_ROWS, heads, dim
        self._queries = torch.zeros(shape, dtype=torch.bfloat16, device=device)
        self._layers = addresses([weight for layer in model.layers for weight in layer], device)
        self._words = torch.zeros(MOST_STEP_ROWS, row_words, dtype=torch.int64, device=device)
        self._partials = torch.zeros(programs, partial_words, dtype=torch.int64, device=device)
        self._rounds = torch.zeros(1, dtype=torch.int32, device=device)

    def arguments(
        self,
        x: Tensor,
        model: DecoderModel,
        pages: Tensor,
        tables: Tensor,
        slots: Tensor,
        positions: Tensor,
        out: Tensor,
    ) -> StepArguments:
        """Return the arguments of a launch for B rows. The tensors must live until it is over. x,
        out [B, h] and pages [layers, pages, 2, kv_heads, 16, D] bfloat16; tables [slots + 1,
        max_pages] int32; slots, positions [B] int64."""
        assert x.shape == out.shape == (len(slots), len(model.norm)) and len(x) <= MOST_STEP_ROWS
        assert x.dtype == out.dtype == pages.dtype == model.norm.dtype == torch.bfloat16
        assert pages.shape[4] == 16 and pages[0].is_contiguous() and tables.stride(1) == 1
        assert tables.dtype == torch.int32
        assert slots.dtype == positions.dtype == torch.int64
        given = (self._layers, model.norm, model.cos, model.sin, x, out)
        where = (slots, positions, self._words, self._partials, self._rounds, self._queries)
        assert all(tensor.is_contiguous() for tensor in (*given, *where))
        return StepArguments(
            *(tensor.data_ptr() for tensor in (*given, pages, tables, *where)),
            sum(1 << layer for layer in self._watched),
            pages.stride(0),
            tables.stride(0),
            len(x),
            model.eps,
        )

    def queries(self, rows: int) -> dict[int, Tensor]:
        """Return the last launch's rotated queries [rows, heads, D] bfloat16 of each watched layer;
        the next launch overwrites them."""
        return {layer: self._queries[layer, :rows] for layer in self._watched}


class StepProgram:
    """The launch for one model. Only one step at a time may use it. `watched`: numbers of the
    layers whose queries it returns.

    Raises CudaError if the kernel cannot be built or loaded.
    """

    def __init__(self, model: DecoderModel, watched: Sequence[int] = ()) -> None:
        self._model = model
        self._builds = CudaBuilds(
            BUILDS, partial(step_settings, model, PROGRAMS), model.norm.device
        )
        words, partials = (
            self._builds.constant("talker_step", name) for name in ("row_words", "partial_words")
        )
        self._tables = StepTables(model, PROGRAMS, words, partials, watched)

    def __call__(
        self, x: Tensor, pages: Tensor, tables: Tensor, slots: Tensor, positions: Tensor
    ) -> tuple[Tensor, dict[int, Tensor]]:
        """Advance rows by a position like `plain_layers`: x [B, h] bfloat16 -> [B, h] bfloat16, and
        the queries [B, heads, D] bfloat16 of each watched layer, which the next launch overwrites.

        pages [layers, pages, 2, kv_heads, 16, D] bfloat16; tables [slots + 1, max_pages] int32;
        slots, positions [B] int64.
        """
        out = torch.empty_like(x)
        given = self._tables.arguments(x, self._model, pages, tables, slots, positions, out)
        self._builds.launch(len(x), given)
        return out, self._tables.queries(len(x))


def step_program(model: DecoderModel, watched: Sequence[int] = ()) -> StepProgram | None:
    """Return the program that advances this talker's rows; None where separate kernels do.

    On a GPU, the reason is then logged.
    """
    return program_or_warning(
        lambda: StepProgram(model, watched), step_obstacle(model), model.norm.is_cuda, "talker"
    )


def step_obstacle(model: DecoderModel) -> str | None:
    """Return why the kernel is not made for this model or its device; None if it is.

    It is made for the width of the released 1.7B talker in bfloat16, and for GPUs of compute
    capability 9.0 (H100, H200) with at least 128 multiprocessors.
    """
    return hopper_obstacle(model.norm, PROGRAMS) or (
        None if model.sizes == _SIZES else "it has not the sizes of the released one of 1.7B"
    )
