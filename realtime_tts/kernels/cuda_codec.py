"""The codec's convolutions on the tensor cores of an H100 or H200: its residual units
(cuda/codec_unit.cu) and convolutions of 160 steps (cuda/codec_conv.cu).

Triton multiplies tiles whose sides are powers of two, and reads a step again for each of the seven
taps. These kernels do neither. The reference implementations are in `snake_conv`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from realtime_tts.kernels.codec_past import Past, Snake
from realtime_tts.kernels.cuda_program import (
    CudaProgram,
    compile_cuda,
    hopper_obstacle,
    pointer_fields,
    program_or_warning,
)

Shape = tuple[int, int, int]
"""Numbers of inputs, outputs and taps."""
UNITS: Mapping[Shape, Mapping[str, int]] = MappingProxyType(
    {
        (96, 96, 7): {"POINT": 1, "DEPTH": 96, "RING": 8},
        (192, 192, 7): {"POINT": 1, "DEPTH": 32, "RING": 6},
        (192, 288, 2): {"POINT": 0, "DEPTH": 32, "RING": 6},
    }
)
"""How codec_unit.cu is built for inputs, outputs and taps: whether a pointwise product follows
(POINT), inputs of a chunk of weights (DEPTH), and chunks that the ring holds (RING)."""
CONVS: Mapping[Shape, Mapping[str, int]] = MappingProxyType({(384, 384, 7): {"RING": 4}})
"""How codec_conv.cu is built for inputs, outputs and taps."""
FEWEST: Mapping[Shape, int] = MappingProxyType(
    {(96, 96, 7): 1, (192, 192, 7): 48, (192, 288, 2): 64, (384, 384, 7): 72}
)
"""The fewest tiles for which each kernel is faster than what it replaces, on an H200."""
_PART, _DEPTH = 192, 64  # outputs of a program of codec_conv.cu, and inputs of a piece

LayerOutput = tuple[Tensor | None, Tensor]
"""A layer's output: raw, if asked for, and activated; both [B, L, out] bfloat16."""
Product = tuple[Tensor, Tensor, Snake]
"""A weight [taps * in, out] bfloat16, its bias [out] float32, and what activates its results."""


class StateArguments(ctypes.Structure):
    """The struct `State` of cuda/codec_tiles.cuh."""

    _fields_ = (
        *pointer_fields("taps side slots"),
        ("slot_stride", ctypes.c_int64),
        ("side_stride", ctypes.c_int64),
    )


class UnitArguments(ctypes.Structure):
    """The struct `Arguments` of cuda/codec_unit.cu."""

    _fields_ = (
        *pointer_fields("x active weights numbers raw activated"),
        ("state", StateArguments),
        ("rows", ctypes.c_int),
        ("steps", ctypes.c_int),
        ("dilation", ctypes.c_int),
    )


class ConvArguments(ctypes.Structure):
    """The struct `Arguments` of cuda/codec_conv.cu."""

    _fields_ = (
        *pointer_fields("x weights numbers activated"),
        ("state", StateArguments),
        ("rows", ctypes.c_int),
        ("steps", ctypes.c_int),
        ("dilation", ctypes.c_int),
    )


def unit_weights(wide: Tensor, point: Tensor | None) -> Tensor:
    """Return weights [taps * in, out], and a point's [out, out], in the order in which
    codec_unit.cu reads them: [.. / 8, out, 8], chunks of eight inputs, in the type of `wide`.

    A thread of the tensor core has two of each eight columns. They are ordered so that its share of
    32 columns is eight adjacent channels. The hidden channels are the point's inputs, in the same
    order.
    """
    channels = wide.shape[1]
    place = torch.arange(channels, device=wide.device)
    group, eight, pair, odd = place // 32, place // 8 % 4, place // 2 % 4, place % 2
    order = 32 * group + 8 * pair + 2 * eight + odd
    stacked = wide if point is None else torch.cat((wide, point[order]))
    return stacked[:, order].view(-1, 8, channels).transpose(1, 2).contiguous()


def conv_weights(weight: Tensor, taps: int) -> Tensor:
    """Return a weight [taps * in, out] in the order in which codec_conv.cu reads it: parts of 192
    outputs, 64 inputs, taps, chunks of eight inputs, outputs, inputs; in its own type."""
    shaped = weight.view(taps, -1, _DEPTH // 8, 8, weight.shape[1] // _PART, _PART)
    return shaped.permute(4, 1, 0, 2, 5, 3).contiguous()


def numbers(*products: Product) -> Tensor:
    """Return each product's bias and activation in one table, [3 * products, out] float32."""
    rows = [row for _, bias, snake in products for row in (bias, *snake)]
    return torch.stack(rows).float().contiguous()


def state_arguments(past: Past) -> StateArguments:
    """Return the arguments for a past with taps [slots + 1, 2, steps, channels] bfloat16 and side
    and slots int64. The tensors must live until the launch is over."""
    taps, side, slots = past
    assert taps.stride(3) == 1 and taps.stride(2) == taps.shape[3]
    assert taps.dtype == torch.bfloat16 and side.dtype == slots.dtype == torch.int64
    assert side.is_contiguous() and slots.is_contiguous()
    pointers = (tensor.data_ptr() for tensor in past)
    return StateArguments(*pointers, taps.stride(0), taps.stride(1))


def pointers(*tensors: Tensor | None) -> list[int | None]:
    """Return the addresses of contiguous tensors, of any shape and type. The tensors must live
    until a launch that gets these is over."""
    given = [tensor for tensor in tensors if tensor is not None]
    assert all(tensor.is_contiguous() for tensor in given)
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


class UnitLaunch:
    """The launch of a residual unit, or, without a point, of a convolution and its activation."""

    def __init__(
        self,
        program: CudaProgram,
        wide: Product,
        taps: int,
        dilation: int,
        point: Product | None,
        most: int,
    ) -> None:
        """`most`: the most thread blocks, which share the tiles."""
        self._fewest = FEWEST[_shape(wide, taps)]
        self._program, self._tile = program, program.constant("tile_steps")
        self._outputs, self._most = wide[0].shape[1], most
        self._weights = unit_weights(wide[0], None if point is None else point[0])
        self._numbers = numbers(wide) if point is None else numbers(wide, point)
        self._dilation = dilation

    def takes(self, active: Tensor) -> bool:
        """Return whether input [B, L, in] suits this kernel: whole tiles, and enough of them."""
        rows, steps, _ = active.shape
        return steps % self._tile == 0 and rows * (steps // self._tile) >= self._fewest

    def __call__(
        self, active: Tensor, past: Past, x: Tensor | None = None, *, raw: bool = True
    ) -> LayerOutput:
        """Apply to activated input [B, L, in] bfloat16, and the residual x [B, L, out] bfloat16 of
        a unit; see `LayerOutput`."""
        rows, steps, _ = active.shape
        y = active.new_empty(rows, steps, self._outputs) if raw else None
        activated = active.new_empty(rows, steps, self._outputs)
        given = UnitArguments(
            *pointers(x, active, self._weights, self._numbers, y, activated),
            state_arguments(past),
            rows,
            steps,
            self._dilation,
        )
        with torch.cuda.device_of(active):
            self._program.launch(given, min(self._most, rows * (steps // self._tile)))
        return y, activated


class ConvLaunch:
    """The launch of a convolution of which only the activated results are needed."""

    def __init__(self, program: CudaProgram, product: Product, taps: int, dilation: int) -> None:
        self._program, self._tile = program, program.constant("tile_steps")
        self._weights, self._numbers = conv_weights(product[0], taps), numbers(product)
        self._outputs, self._dilation = product[0].shape[1], dilation
        self._fewest = FEWEST[_shape(product, taps)]

    def _programs(self, active: Tensor) -> int:
        rows, steps, _ = active.shape
        return rows * (steps // self._tile) * (self._outputs // _PART)

    def takes(self, active: Tensor) -> bool:
        """Return whether input [B, L, in] suits this kernel: whole tiles, and enough of them."""
        return active.shape[1] % self._tile == 0 and self._programs(active) >= self._fewest

    def __call__(self, active: Tensor, past: Past) -> Tensor:
        """Convolve activated input [B, L, in] bfloat16 -> activated [B, L, out] bfloat16."""
        rows, steps, _ = active.shape
        activated = active.new_empty(rows, steps, self._outputs)
        given = ConvArguments(
            *pointers(active, self._weights, self._numbers, activated),
            state_arguments(past),
            rows,
            steps,
            self._dilation,
        )
        with torch.cuda.device_of(active):
            self._program.launch(given, self._programs(active))
        return activated


def settings(shape: Shape, build: Mapping[str, int]) -> dict[str, int]:
    """Return the macros of a source for inputs, outputs and taps, with those of a build."""
    return dict(zip(("INPUTS", "OUTPUTS", "TAPS"), shape, strict=True)) | dict(build)


class CodecPrograms:
    """Both kernels, built for the released codec's shapes. Raises CudaError if that fails."""

    def __init__(self, device: torch.device) -> None:
        self._most = torch.cuda.get_device_properties(device).multi_processor_count
        with torch.cuda.device(device):
            self._units = {shape: _built("codec_unit", shape, UNITS[shape]) for shape in UNITS}
            self._convs = {shape: _built("codec_conv", shape, CONVS[shape]) for shape in CONVS}

    def unit(
        self, wide: Product, taps: int, dilation: int, point: Product | None = None
    ) -> UnitLaunch | None:
        """Return the launch of a unit, or of a convolution; None where Triton's kernels do it."""
        program = self._units.get(_shape(wide, taps))
        if program is None:
            return None
        return UnitLaunch(program, wide, taps, dilation, point, self._most)

    def conv(self, product: Product, taps: int, dilation: int) -> ConvLaunch | None:
        """Return the launch of a convolution of which only the activated results are needed; None
        where other kernels do it."""
        program = self._convs.get(_shape(product, taps))
        return None if program is None else ConvLaunch(program, product, taps, dilation)


def _shape(product: Product, taps: int) -> Shape:
    inputs, outputs = product[0].shape
    return inputs // taps, outputs, taps


def _built(kernel: str, shape: Shape, build: Mapping[str, int]) -> CudaProgram:
    return CudaProgram(compile_cuda(f"{kernel}.cu", settings(shape, build), "sm_90a"), kernel)


def codec_programs(weight: Tensor) -> CodecPrograms | None:
    """Return the kernels for layers with weights [any shape] like this one, bfloat16; None where
    Triton's kernels do everything. On a GPU, the reason is then logged."""
    return program_or_warning(
        lambda: CodecPrograms(weight.device),
        hopper_obstacle(weight, 1),
        weight.is_cuda,
        "codec",
    )
