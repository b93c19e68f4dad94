"""The codec's kernels in CUDA C++, each against its reference, with the state they leave behind.

Their sources run on a CPU thread (cuda_on_cpu) and, with `pytest -m gpu`, on the GPUs they are made
for.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels.codec_past import Past, Snake
from realtime_tts.kernels.cuda_codec import (
    CONVS,
    FEWEST,
    UNITS,
    CodecPrograms,
    ConvLaunch,
    LayerOutput,
    Product,
    Shape,
    UnitLaunch,
    codec_programs,
    settings,
)
from realtime_tts.kernels.snake_conv import conv, residual_unit
from tests.kernels.cuda_building import Build
from tests.kernels.predictor_frames import BF16, Random, difference, normal

GPU = pytest.mark.parametrize(
    "device", [pytest.param("cuda", marks=pytest.mark.gpu)], indirect=True
)
NEAR = 0.004
"""What rounding to bfloat16 at other places makes of a result."""


class Emulated:
    """A program on the CPU, in place of a `CudaProgram`. It runs at most three at once, so that
    each has several tiles."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def constant(self, name: str) -> int:
        return ctypes.c_int.in_dll(self._library, name).value

    def launch(self, arguments: ctypes.Structure, programs: int) -> None:
        assert not self._library.run(ctypes.byref(arguments), programs), "they wait for ever"


class Layer:
    """What a layer is made of, and what it is given: rows, steps, shape and dilation."""

    def __init__(self, random: Random, rows: int, steps: int, shape: Shape, dilation: int) -> None:
        inputs, outputs, self.taps = shape
        self.dilation, self._random = dilation, random
        self.x = random(rows, steps, outputs, dtype=BF16)
        self.active = random(rows, steps, inputs, dtype=BF16)
        self.wide, self.point = self.product(self.taps * inputs, outputs), None
        if UNITS.get(shape, {}).get("POINT"):
            self.point = self.product(outputs, outputs)
        # Of more slots than rows, in a wider arena as in the model.
        past = (self.taps - 1) * dilation
        arena = random(rows + 2, 2, 16 + past * inputs, dtype=BF16)
        device = arena.device
        side = torch.arange(rows + 2, device=device) % 2
        slots = torch.arange(rows, device=device).flip(0) + 1
        self.past = Past(arena[:, :, 16:].unflatten(2, (past, inputs)), side, slots)

    def product(self, inputs: int, outputs: int) -> Product:
        weight = (self._random(inputs, outputs) * inputs**-0.5).to(BF16)
        snake = Snake(*((0.3 * self._random(2, outputs)).exp().unbind()))
        return weight, self._random(outputs), snake

    def check(self, launch: UnitLaunch | ConvLaunch, raw: bool) -> None:
        past, other = (self.past._replace(taps=copied(self.past.taps)) for _ in range(2))
        y: Tensor | None = None
        if isinstance(launch, UnitLaunch):
            y, activated = launch(self.active, past, self.x if self.point else None, raw=raw)
        else:
            activated = launch(self.active, past)
        wanted = self.wanted(other)
        assert (y is None) == (not raw)
        if y is not None and wanted[0] is not None:
            assert difference(y, wanted[0]) < NEAR
        assert difference(activated, wanted[1]) < NEAR
        assert torch.equal(past.taps, other.taps)

    def wanted(self, past: Past) -> LayerOutput:
        weight, bias, snake = self.wide
        if self.point is not None:
            point, after = self.point[:2], self.point[2]
            given = self.x, self.active, (weight, bias), snake, point, past
            return residual_unit.plain(*given, dilation=self.dilation, after=after)
        y, activated = conv.plain(
            self.active,
            weight,
            bias,
            past,
            count=self.taps,
            dilation=self.dilation,
            snake=snake,
        )
        assert activated is not None
        return y, activated


def copied(taps: Tensor) -> Tensor:
    return taps.clone(memory_format=torch.preserve_format)


@pytest.mark.parametrize(
    ("shape", "rows", "steps", "dilation", "raw"),
    [
        ((96, 96, 7), 2, 256, 9, True),
        ((96, 96, 7), 1, 128, 1, False),
        ((192, 192, 7), 2, 128, 3, True),
        ((192, 288, 2), 2, 256, 1, True),
    ],
)
def test_a_unit_is_that_of_the_reference(
    shape: Shape,
    rows: int,
    steps: int,
    dilation: int,
    raw: bool,
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer = Layer(normal(), rows, steps, shape, dilation)
    program: Any = Emulated(build("codec_unit", settings(shape, UNITS[shape])))
    # Three programs for four tiles: one has two, of different rows.
    launch = UnitLaunch(program, layer.wide, layer.taps, dilation, layer.point, most=3)
    layer.check(launch, raw)


@pytest.mark.parametrize(("rows", "steps", "dilation"), [(1, 320, 9), (2, 160, 1)])
def test_a_convolution_is_that_of_the_reference(
    rows: int, steps: int, dilation: int, build: Build
) -> None:
    shape = 384, 384, 7
    layer = Layer(normal(), rows, steps, shape, dilation)
    program: Any = Emulated(build("codec_conv", settings(shape, CONVS[shape])))
    layer.check(ConvLaunch(program, layer.wide, 7, dilation), raw=False)


@pytest.fixture
def programs(device: torch.device) -> CodecPrograms:
    found = codec_programs(torch.zeros(1, dtype=BF16, device=device))
    if found is None:
        pytest.skip("the kernels are made for compute capability 9.0")
    return found


@GPU
@pytest.mark.parametrize("shape", [*UNITS, *CONVS])
@pytest.mark.parametrize(("rows", "dilation"), [(1, 1), (3, 9), (40, 3)])
def test_layers_on_a_gpu_are_those_of_the_reference(
    shape: Shape, rows: int, dilation: int, programs: CodecPrograms, random: Random
) -> None:
    layer = Layer(random, rows, 640, shape, dilation if shape[2] == 7 else 1)
    if shape in CONVS:
        conv_launch = programs.conv(layer.wide, layer.taps, layer.dilation)
        assert conv_launch is not None
        layer.check(conv_launch, raw=False)
        return
    launch = programs.unit(layer.wide, layer.taps, layer.dilation, layer.point)
    assert launch is not None
    for raw in (True, False):
        layer.check(launch, raw)


def test_few_tiles_and_parts_of_tiles_are_left_to_others(build: Build) -> None:
    shape = 192, 192, 7
    layer = Layer(normal(), 1, 128, shape, 1)
    program: Any = Emulated(build("codec_unit", settings(shape, UNITS[shape])))
    launch = UnitLaunch(program, layer.wide, 7, 1, layer.point, most=3)
    enough = torch.empty(FEWEST[shape], 128, 192, dtype=BF16)
    assert launch.takes(enough) and not launch.takes(enough[1:])
    assert not launch.takes(torch.empty(len(enough), 192, 192, dtype=BF16))


def test_a_cpu_has_no_programs() -> None:
    assert codec_programs(torch.zeros(1, dtype=BF16)) is None
