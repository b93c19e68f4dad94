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
    program_or_warning,
)

Shape = tuple[int, int, int]
"""Inputs, outputs and taps."""
UNITS: Mapping[Shape, Mapping[str, int]] = MappingProxyType(
    {
        (96, 96, 7): {"POINT": 1, "DEPTH": 96, "RING": 8},
        (192, 192, 7): {"POINT": 1, "DEPTH": 32, "RING": 6},
        (192, 288, 2): {"POINT": 0, "DEPTH": 32, "RING": 6},
    }
)
"""How codec_unit.cu is built for inputs, outputs and taps: whether a pointwise product follows,
inputs of a piece of weights, and pieces that the ring holds."""
CONVS: Mapping[Shape, Mapping[str, int]] = MappingProxyType({(384, 384, 7): {"RING": 4}})
"""The same for codec_conv.cu."""
FEWEST: Mapping[Shape, int] = MappingProxyType(
    {(96, 96, 7): 1, (192, 192, 7): 48, (192, 288, 2): 64, (384, 384, 7): 72}
)
"""Tiles from which on each is faster than what it replaces, on an H200."""
_PART, _DEPTH = 192, 64  # outputs of a program of codec_conv.cu, and inputs of a piece

Made = tuple[Tensor | None, Tensor]
"""What a layer gives: raw, if it was asked for, and activated."""
Product = tuple[Tensor, Tensor, Snake]
"""A weight [taps * in, out], its bias [out], and what activates its results."""


class StateArguments(ctypes.Structure):
    """As `State` in cuda/codec_tiles.cuh."""

    _fields_ = (
        ("taps", ctypes.c_void_p),
        ("side", ctypes.c_void_p),
        ("slots", ctypes.c_void_p),
        ("slot_stride", ctypes.c_int64),
        ("side_stride", ctypes.c_int64),
    )


class UnitArguments(ctypes.Structure):
    """As `Arguments` in cuda/codec_unit.cu."""

    _fields_ = (
        ("x", ctypes.c_void_p),
        ("active", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("raw", ctypes.c_void_p),
        ("activated", ctypes.c_void_p),
        ("state", StateArguments),
        ("rows", ctypes.c_int),
        ("steps", ctypes.c_int),
        ("dilation", ctypes.c_int),
    )


class ConvArguments(ctypes.Structure):
    """As `Arguments` in cuda/codec_conv.cu."""

    _fields_ = (
        ("x", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("activated", ctypes.c_void_p),
        ("state", StateArguments),
        ("rows", ctypes.c_int),
        ("steps", ctypes.c_int),
        ("dilation", ctypes.c_int),
    )


def unit_weights(wide: Tensor, point: Tensor | None) -> Tensor:
    """Weights [taps * in, out], and of the point [out, out], in the order in which codec_unit.cu
    reads them: [.. / 8, out, 8], chunks of eight inputs.

    A thread of the tensor core has two of each eight columns. They are ordered so that what it has
    of 32 columns are eight channels side by side. The hidden channels are the point's inputs, in
    the same order.
    """
    channels = wide.shape[1]
    place = torch.arange(channels, device=wide.device)
    group, eight, pair, odd = place // 32, place // 8 % 4, place // 2 % 4, place % 2
    order = 32 * group + 8 * pair + 2 * eight + odd
    stacked = wide if point is None else torch.cat((wide, point[order]))
    return stacked[:, order].view(-1, 8, channels).transpose(1, 2).contiguous()


def conv_weights(weight: Tensor, taps: int) -> Tensor:
    """A weight [taps * in, out] in the order in which codec_conv.cu reads it: parts of 192 outputs,
    64 inputs, taps, chunks of eight inputs, outputs, inputs."""
    shaped = weight.view(taps, -1, _DEPTH // 8, 8, weight.shape[1] // _PART, _PART)
    return shaped.permute(4, 1, 0, 2, 5, 3).contiguous()


def numbers(*products: Product) -> Tensor:
    """Each product's bias and activation in one table, float32 [3 * products, out]."""
    rows = [row for _, bias, snake in products for row in (bias, *snake)]
    return torch.stack(rows).float().contiguous()


def state_arguments(past: Past) -> StateArguments:
    taps, side, slots = past
    assert taps.stride(3) == 1 and taps.stride(2) == taps.shape[3]
    assert taps.dtype == torch.bfloat16 and side.dtype == slots.dtype == torch.int64
    assert side.is_contiguous() and slots.is_contiguous()
    pointers = (tensor.data_ptr() for tensor in past)
    return StateArguments(*pointers, taps.stride(0), taps.stride(1))


def pointers(*tensors: Tensor | None) -> list[int | None]:
    """Where they lie. They must live until a launch that is given this is over."""
    given = [tensor for tensor in tensors if tensor is not None]
    assert all(tensor.is_contiguous() for tensor in given)
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


class UnitLaunch:
    """A residual unit, or, without a point, a convolution and what activates it."""

    def __init__(
        self,
        program: CudaProgram,
        wide: Product,
        taps: int,
        dilation: int,
        point: Product | None,
        most: int,
    ) -> None:
        """`most` programs share the tiles."""
        self._fewest = FEWEST[_shape(wide, taps)]
        self._program, self._tile = program, program.constant("tile_steps")
        self._outputs, self._most = wide[0].shape[1], most
        self._weights = unit_weights(wide[0], None if point is None else point[0])
        self._numbers = numbers(wide) if point is None else numbers(wide, point)
        self._dilation = dilation

    def takes(self, active: Tensor) -> bool:
        """Whether [B, L, in] is for this kernel: whole tiles, and enough of them."""
        rows, steps, _ = active.shape
        return steps % self._tile == 0 and rows * (steps // self._tile) >= self._fewest

    def __call__(
        self, active: Tensor, past: Past, x: Tensor | None = None, *, raw: bool = True
    ) -> Made:
        """Activated input [B, L, in], and the residual x [B, L, out] of a unit -> [B, L, out]."""
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
    """A convolution of which only the activated results are wanted."""

    def __init__(self, program: CudaProgram, product: Product, taps: int, dilation: int) -> None:
        self._program, self._tile = program, program.constant("tile_steps")
        self._weights, self._numbers = conv_weights(product[0], taps), numbers(product)
        self._outputs, self._dilation = product[0].shape[1], dilation
        self._fewest = FEWEST[_shape(product, taps)]

    def _programs(self, active: Tensor) -> int:
        rows, steps, _ = active.shape
        return rows * (steps // self._tile) * (self._outputs // _PART)

    def takes(self, active: Tensor) -> bool:
        """Whether [B, L, in] is for this kernel: whole tiles, and enough of them."""
        return active.shape[1] % self._tile == 0 and self._programs(active) >= self._fewest

    def __call__(self, active: Tensor, past: Past) -> Tensor:
        """Activated input [B, L, in] -> activated [B, L, out]."""
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
    """Return the macros of a source for inputs, outputs and taps."""
    return dict(zip(("INPUTS", "OUTPUTS", "TAPS"), shape, strict=True)) | dict(build)


class CodecPrograms:
    """Both kernels, built for the shapes of the released codec. Raises CudaError where they cannot
    be built or loaded."""

    def __init__(self, device: torch.device) -> None:
        self._most = torch.cuda.get_device_properties(device).multi_processor_count
        with torch.cuda.device(device):
            self._units = {shape: _built("codec_unit", shape, UNITS[shape]) for shape in UNITS}
            self._convs = {shape: _built("codec_conv", shape, CONVS[shape]) for shape in CONVS}

    def unit(
        self, wide: Product, taps: int, dilation: int, point: Product | None = None
    ) -> UnitLaunch | None:
        """The launch of a unit, or of a convolution; None where Triton's kernels do it."""
        program = self._units.get(_shape(wide, taps))
        if program is None:
            return None
        return UnitLaunch(program, wide, taps, dilation, point, self._most)

    def conv(self, product: Product, taps: int, dilation: int) -> ConvLaunch | None:
        """The same for a convolution of which only the activated results are wanted."""
        program = self._convs.get(_shape(product, taps))
        return None if program is None else ConvLaunch(program, product, taps, dilation)


def _shape(product: Product, taps: int) -> Shape:
    inputs, outputs = product[0].shape
    return inputs // taps, outputs, taps


def _built(kernel: str, shape: Shape, build: Mapping[str, int]) -> CudaProgram:
    return CudaProgram(compile_cuda(f"{kernel}.cu", settings(shape, build), "sm_90a"), kernel)


def codec_programs(weight: Tensor) -> CodecPrograms | None:
    """Return the kernels for layers with weights like this one; None where Triton's do it all. On a
    GPU, the log then says why."""
    return program_or_warning(
        lambda: CodecPrograms(weight.device),
        hopper_obstacle(weight, 1),
        weight.is_cuda,
        "codec",
    )
