"""The codec's kernels, each against its reference, with the state they leave behind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from realtime_tts.audio.pcm import to_s16le
from realtime_tts.kernels.codec_output import output_conv, pcm
from realtime_tts.kernels.codec_past import Past, Snake
from realtime_tts.kernels.codec_rows import (
    add_scaled_norm,
    advance,
    codebook_sum,
    depthwise_norm,
)
from realtime_tts.kernels.snake_conv import conv, residual_unit
from realtime_tts.kernels.snake_unfold import snake_beta, unfold
from tests.kernels.conftest import crossed

Random = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]
DTYPES = [torch.float32, torch.bfloat16]
SLOTS = [4, 0, 3]  # of five and the scratch slot
ROWS = len(SLOTS)


@pytest.fixture
def make_past(random: Random, device: torch.device) -> Callable[..., Past]:
    """A past with random contents, inside a wider arena as in the model; rows on both sides."""

    def make(steps: int, channels: int, dtype: torch.dtype = torch.float32) -> Past:
        arena = random(6, 2, 16 + steps * channels + 5, dtype=dtype)
        taps = arena[:, :, 16 : 16 + steps * channels].unflatten(2, (steps, channels))
        side = torch.tensor([1, 0, 0, 1, 1, 0], device=device)
        return Past(taps, side, torch.tensor(SLOTS, device=device))

    return make


@pytest.fixture
def snakes(random: Random) -> Callable[[int], Snake]:
    # Mild ones: a steep sine makes a difference of rounding a large one.
    return lambda channels: Snake(*((0.3 * random(2, channels)).exp().unbind()))


def copied(past: Past) -> Past:
    arena = past.taps.clone(memory_format=torch.preserve_format)
    return Past(arena, past.side, past.slots)


# (steps, channels, taps, dilation): fewer steps than the past has, ends inside a tile, wide ones.
UNFOLDED = [(1, 20, 3, 1), (4, 33, 7, 1), (40, 6, 7, 9), (70, 130, 7, 3), (32, 16, 2, 1)]


@pytest.mark.parametrize(("shape", "dtype"), crossed([(one,) for one in UNFOLDED], DTYPES))
def test_the_left_matrix_equals_its_twins(
    shape: tuple[int, int, int, int],
    dtype: torch.dtype,
    random: Random,
    make_past: Callable[..., Past],
    snakes: Callable[[int], Snake],
    close: Check,
) -> None:
    steps, channels, count, dilation = shape
    x, add = random(ROWS, steps, channels, dtype=dtype), random(channels)
    snake = snakes(channels)
    past = make_past((count - 1) * dilation, channels, dtype)
    other, y = copied(past), x.clone()
    found = unfold(x, past, count=count, dilation=dilation, snake=snake, add=add)
    wanted = unfold.plain(y, other, count=count, dilation=dilation, snake=snake, add=add)
    close(found, wanted)
    close(x, y)
    close(past.taps, other.taps)


def test_an_activation_alone_equals_its_twin(
    random: Random, snakes: Callable[[int], Snake], close: Check
) -> None:
    x, snake = random(2, 37, 50), snakes(50)
    close(unfold(x, None, snake=snake), unfold.plain(x, None, snake=snake))


def test_the_sine_holds_for_large_angles_and_passes_nan_on(
    random: Random, device: torch.device
) -> None:
    x = torch.cat((random(500) * 10, random(500) * 1000)).view(1, 1000, 1)
    one = Snake(torch.ones(1, device=device), torch.ones(1, device=device))
    found = unfold(x, None, snake=one).flatten() - x.flatten()
    torch.testing.assert_close(
        found, x.flatten().double().sin().square().float(), atol=2e-4, rtol=0
    )
    small = x.flatten().abs() < 10
    wanted = snake_beta(x, one).flatten() - x.flatten()
    torch.testing.assert_close(found[small], wanted[small], atol=3e-6, rtol=0)
    assert unfold(x * torch.nan, None, snake=one).isnan().all()


# (steps, channels in, out, taps, dilation)
CONVS = [
    (1, 24, 24, 1, 1),
    (54, 24, 20, 7, 9),
    (40, 32, 48, 7, 1),
    (130, 6, 6, 7, 3),
    (33, 64, 130, 2, 1),
]


@pytest.mark.parametrize(
    ("shape", "outputs", "dtype"),
    crossed(list(product(CONVS, [(True, True), (True, False), (False, True)])), DTYPES),
)
def test_a_convolution_equals_its_twin(
    shape: tuple[int, int, int, int, int],
    outputs: tuple[bool, bool],
    dtype: torch.dtype,
    random: Random,
    make_past: Callable[..., Past],
    snakes: Callable[[int], Snake],
    close: Check,
) -> None:
    steps, inputs, width, count, dilation = shape
    raw, active = outputs
    x = random(ROWS, steps, inputs, dtype=dtype)
    weight = (random(count * inputs, width) * (count * inputs) ** -0.5).to(dtype)
    bias, residual = random(width), random(ROWS, steps, width, dtype=dtype)
    past = make_past((count - 1) * dilation, inputs, dtype) if count > 1 else None
    other = None if past is None else copied(past)
    extra: dict[str, Any] = {
        "count": count,
        "dilation": dilation,
        "residual": residual if raw else None,
        "snake": snakes(width) if active else None,
        "raw": raw,
    }
    found = conv(x, weight, bias, past, **extra)
    wanted = conv.plain(x, weight, bias, other, **extra)
    for one, two in zip(found, wanted, strict=True):
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            close(one, two)
    if past is not None and other is not None:
        close(past.taps, other.taps)


# float16: the interpreter cuts off where a GPU rounds to bfloat16, and here it does so halfway.
@pytest.mark.parametrize(
    ("steps", "channels", "dilation", "raw", "dtype"),
    crossed(
        [(*one, raw) for raw in (True, False) for one in ((54, 6, 9), (70, 96, 3), (33, 16, 1))],
        [torch.float32, torch.float16],
    ),
)
def test_a_residual_unit_equals_its_twin(
    steps: int,
    channels: int,
    dilation: int,
    raw: bool,
    dtype: torch.dtype,
    random: Random,
    make_past: Callable[..., Past],
    snakes: Callable[[int], Snake],
    close: Check,
) -> None:
    x, active = (random(ROWS, steps, channels, dtype=dtype) for _ in range(2))
    wide = (random(7 * channels, channels) * (7 * channels) ** -0.5).to(dtype), random(channels)
    point = (random(channels, channels) * channels**-0.5).to(dtype), random(channels)
    middle, after = snakes(channels), snakes(channels)
    past = make_past(6 * dilation, channels, dtype)
    other = copied(past)
    arguments = x, active, wide, middle, point
    found = residual_unit(*arguments, past, dilation=dilation, after=after, raw=raw)
    wanted = residual_unit.plain(*arguments, other, dilation=dilation, after=after, raw=raw)
    assert (found[0] is None) == (wanted[0] is None) == (not raw)
    if found[0] is not None and wanted[0] is not None:
        close(found[0], wanted[0])
    close(found[1], wanted[1])
    close(past.taps, other.taps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("steps", "channels"), [(6, 6), (75, 96)])
def test_the_output_convolution_equals_its_twin(
    steps: int,
    channels: int,
    dtype: torch.dtype,
    random: Random,
    make_past: Callable[..., Past],
    close: Check,
) -> None:
    active = random(ROWS, steps, channels, dtype=dtype)
    weight, bias = (random(7, channels) * channels**-0.5).to(dtype), random(1)
    past = make_past(6, channels, dtype)
    other = copied(past)
    found = output_conv(active, weight, bias, past)
    wanted = output_conv.plain(active, weight, bias, other)
    assert found.dtype is torch.float32
    assert (found.abs() == 1).any() and (found.abs() < 1).any()
    close(found, wanted)
    close(past.taps, other.taps)


def test_pcm_is_rounded_as_on_the_host(random: Random, device: torch.device) -> None:
    ties = (torch.arange(-3000, 3000) + 0.5) / 32_767
    samples = torch.cat((random(2000) * 0.5, ties.to(device), random(100) * 10))
    wanted = np.frombuffer(to_s16le(samples.cpu().numpy()), dtype="<i2")
    for form in (pcm, pcm.plain):
        assert form(samples).cpu().tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [32, 96, 512])
def test_a_norm_after_a_scaled_sum_equals_its_twin(
    width: int, dtype: torch.dtype, random: Random, close: Check
) -> None:
    x, y = random(5, width, dtype=dtype), random(5, width, dtype=dtype)
    scale, weight, other = random(width, dtype=dtype), random(width, dtype=dtype), x.clone()
    close(
        add_scaled_norm(x, y, scale, weight, 1e-5),
        add_scaled_norm.plain(other, y, scale, weight, 1e-5),
    )
    close(x, other)


@pytest.mark.parametrize(
    ("steps", "channels", "dtype"),
    crossed([(2, 64), (4, 100), (5, 64), (6, 64), (16, 96)], DTYPES),
)
def test_a_depthwise_convolution_equals_its_twin(
    steps: int,
    channels: int,
    dtype: torch.dtype,
    random: Random,
    make_past: Callable[..., Past],
    close: Check,
) -> None:
    x, weight = random(ROWS, steps, channels, dtype=dtype), random(7, channels, dtype=dtype)
    bias, *norm = (random(channels, dtype=dtype) for _ in range(3))
    past = make_past(6, channels, dtype)
    other = copied(past)
    found = depthwise_norm(x, weight, bias, (norm[0], norm[1]), 1e-6, past)
    close(found, depthwise_norm.plain(x, weight, bias, (norm[0], norm[1]), 1e-6, other))
    close(past.taps, other.taps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sum_of_codebooks_equals_its_twin_and_reads_nothing_beside_them(
    dtype: torch.dtype, random: Random, close: Check, device: torch.device
) -> None:
    table = random(4, 10, 20, dtype=dtype)
    codes = torch.tensor([[[0, 9, 3, 5], [2150, -7, 10, 1]]], device=device)
    found = codebook_sum(codes, table)
    close(found, codebook_sum.plain(codes, table))
    wanted = sum(table[book, code].float() for book, code in enumerate([9, 0, 9, 1]))
    assert isinstance(wanted, Tensor)
    close(found[0, 1], wanted.to(dtype))


def test_moving_on_counts_frames_and_changes_sides(device: torch.device) -> None:
    slots = torch.tensor([4, 0, 5, 5], device=device)
    for form in (advance, advance.plain):
        frames = torch.tensor([3, 9, 9, 9, 1, 0], device=device)
        side = torch.tensor([1, 0, 1, 0, 0, 0], device=device)
        form(frames, side, slots, 4)
        assert frames.tolist() == [7, 9, 9, 9, 5, 4]
        assert side.tolist() == [0, 0, 1, 0, 1, 1]
