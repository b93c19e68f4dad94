"""Norms and activations: each kernel against its reference implementation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import add_rms_norm, rms_norm, swiglu
from realtime_tts.model.layers import RMSNorm

Random = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
SHAPES = [(1, 128), (3, 96), (2, 3, 257), (5, 2048)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_norm_equals_its_plain_twin(
    shape: tuple[int, ...], dtype: torch.dtype, random: Random, close: Check
) -> None:
    x, weight = random(*shape, dtype=dtype), random(shape[-1], dtype=dtype)
    close(rms_norm(x, weight, 1e-6), rms_norm.plain(x, weight, 1e-6))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_norm_after_a_sum_equals_its_plain_twin(
    shape: tuple[int, ...], dtype: torch.dtype, random: Random, close: Check
) -> None:
    sizes = (1, *shape), shape, shape[-1:]
    x, residual, weight = (random(*size, dtype=dtype) for size in sizes)
    before = x.clone(), residual.clone()
    total, normed = add_rms_norm(x, residual, weight, 1e-5)
    wanted, _ = add_rms_norm.plain(x, residual, weight, 1e-5)
    close(total, wanted)
    assert torch.equal(wanted, x[0] + residual)
    close(normed, add_rms_norm.plain(total[None], torch.zeros_like(total), weight, 1e-5)[1])
    assert torch.equal(x, before[0]) and torch.equal(residual, before[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [2, 4, 8])
def test_parts_are_added_up_and_rounded_before_the_residual(
    count: int, dtype: torch.dtype, random: Random
) -> None:
    parts, residual, weight = random(count, 2, 3, 96), random(2, 3, 96, dtype=dtype), random(96)
    summed = parts[0]
    for part in parts[1:]:
        summed = summed + part
    weight, summed = weight.to(dtype), summed.to(dtype)
    for kernel in (add_rms_norm, add_rms_norm.plain):
        found = kernel(parts, residual, weight, 1e-5)
        wanted = kernel(summed[None], residual, weight, 1e-5)
        assert all(map(torch.equal, found, wanted))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 64), (3, 2, 96), (4, 2 * 1500)])
def test_swiglu_equals_its_plain_twin(
    shape: tuple[int, ...], dtype: torch.dtype, random: Random, close: Check
) -> None:
    gate_up = random(*shape, dtype=dtype)
    close(swiglu(gate_up), swiglu.plain(gate_up))


def test_rows_of_a_wider_tensor_are_read_where_they_lie(random: Random, close: Check) -> None:
    wide, weight = random(4, 200), random(64)
    x, residual = wide[:, :64], wide[:, 64:128]
    close(rms_norm(x, weight, 1e-6), rms_norm.plain(x, weight, 1e-6))
    close(
        add_rms_norm(x[None], residual, weight, 1e-6)[1], rms_norm.plain(x + residual, weight, 1e-6)
    )
    close(swiglu(wide[:, :100]), swiglu.plain(wide[:, :100]))


def test_small_rows_keep_their_epsilon(random: Random, close: Check) -> None:
    x, weight = random(2, 64) * 1e-4, random(64)
    close(rms_norm(x, weight, 1e-5), rms_norm.plain(x, weight, 1e-5))
    assert rms_norm(x, weight, 1e-5).abs().max() < 0.5  # by itself, x would be scaled to 1


def test_the_norm_is_the_layers_norm(random: Random, close: Check) -> None:
    x, weight = random(3, 128), random(128)
    close(rms_norm(x, weight, 1e-6), RMSNorm(weight, 1e-6)(x))


def test_no_rows_are_no_error(random: Random) -> None:
    x, weight = random(0, 64), random(64)
    assert rms_norm(x, weight, 1e-6).shape == (0, 64)
    assert add_rms_norm(x[None], x, weight, 1e-6)[0].shape == (0, 64)
    assert swiglu(x).shape == (0, 32)
