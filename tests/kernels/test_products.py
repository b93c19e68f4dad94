"""Products of few rows: Triton's against plain torch, and layers with and without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from realtime_tts.kernels import (
    few_rows,
    gates_suffice,
    products,
    rope_and_store,
    split_k_product,
    swiglu,
    swiglu_product,
)
from realtime_tts.kernels.elementwise import sum_of_parts
from realtime_tts.model import fused
from realtime_tts.model.config import TransformerConfig
from realtime_tts.model.layers import DecoderLayer, RMSNorm, Rope
from realtime_tts.model.random_weights import RandomWeights
from tests.kernels.conftest import crossed

Random = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]

DTYPES = [torch.bfloat16, torch.float16]
ROWS = [1, 9, 16, 17, 64]
SIZES = [(128, 128, 1), (128, 512, 4), (256, 1024, 8), (384, 384, 1)]
"""Outputs, inputs and parts."""


@pytest.fixture
def device(device: torch.device) -> torch.device:
    """As for other kernels, where these run."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) != (9, 0):
        pytest.skip("the kernels are made for compute capability 9.0")
    return device


def operands(
    random: Random, rows: int, outputs: int, inputs: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """x, which NaN follow in memory, and a weight."""
    x = torch.cat((random(rows, inputs), torch.nan * random(64, inputs))).to(dtype)
    return x[:rows], (random(outputs, inputs) * inputs**-0.5).to(dtype)


@pytest.mark.parametrize(
    ("rows", "outputs", "inputs", "count", "dtype"),
    crossed([(rows, *sizes) for sizes in SIZES for rows in ROWS], DTYPES),
)
def test_parts_are_shares_of_the_inputs_and_their_sum_is_the_product(
    rows: int,
    outputs: int,
    inputs: int,
    count: int,
    dtype: torch.dtype,
    random: Random,
    close: Check,
) -> None:
    x, weight = operands(random, rows, outputs, inputs, dtype)
    parts = split_k_product(x, weight)
    assert parts.dtype is torch.float32 and parts.shape == (count, rows, outputs)
    close(sum_of_parts(parts, dtype), split_k_product.plain(x, weight)[0])
    shares = zip(x.float().chunk(count, 1), weight.float().chunk(count, 1), strict=True)
    wanted = torch.stack([given @ of.t() for given, of in shares])
    torch.testing.assert_close(parts, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("rows", "outputs", "inputs", "dtype"),
    crossed([(rows, *sizes[:2]) for sizes in SIZES for rows in ROWS], DTYPES),
)
def test_swiglu_in_a_product_equals_its_plain_twin(
    rows: int, outputs: int, inputs: int, dtype: torch.dtype, random: Random, close: Check
) -> None:
    x, weight = operands(random, rows, outputs, inputs, dtype)
    close(swiglu_product(x, weight), swiglu_product.plain(x, weight))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gate_and_up_are_rounded_as_by_kernels_of_their_own(
    dtype: torch.dtype, random: Random
) -> None:
    x, weight = operands(random, 16, 384, 384, dtype)
    (whole,) = split_k_product(x, weight)
    assert torch.equal(swiglu_product(x, weight), swiglu(whole.to(dtype)))


@pytest.mark.parametrize("product", [split_k_product, swiglu_product])
@pytest.mark.parametrize(("rows", "fewer"), [(16, 1), (16, 9), (32, 17), (64, 33)])
def test_a_row_does_not_depend_on_the_rows_beside_it(
    product: Callable[..., Tensor], rows: int, fewer: int, random: Random
) -> None:
    x, weight = operands(random, rows, 128, 512, torch.bfloat16)
    some = x[rows - fewer :].contiguous()
    assert torch.equal(product(some, weight), product(x, weight)[..., rows - fewer :, :])


def test_no_rows_are_no_error(random: Random) -> None:
    x, weight = operands(random, 0, 128, 512, torch.float16)
    assert split_k_product(x, weight).shape == (4, 0, 128)
    assert swiglu_product(x, weight).shape == (0, 64)


@pytest.mark.parametrize(
    ("outputs", "inputs", "count"),
    [(4096, 2048, 2), (2048, 2048, 4), (2048, 6144, 4)]  # 1.7B
    + [(4096, 1024, 2), (1024, 2048, 8), (1024, 3072, 8)],  # 0.6B
)
def test_products_of_the_released_talkers_fill_a_gpu(outputs: int, inputs: int, count: int) -> None:
    assert products.parts_of(outputs, inputs) == count
    assert outputs // products.OUTPUTS * count == 128
    assert inputs % (count * products.INPUTS) == 0


def test_swiglu_is_in_the_product_where_that_has_enough_programs() -> None:
    assert gates_suffice(torch.zeros(2 * 6144, 1))  # 1.7B
    assert not gates_suffice(torch.zeros(2 * 3072, 1))  # 0.6B


# Where they serve -------------------------------------------------------------------------------


def test_they_serve_few_rows_in_half_precision_of_sizes_that_divide(device: torch.device) -> None:
    def serve(rows: int, outputs: int, inputs: int, *dtypes: torch.dtype) -> bool:
        x, weight = (
            torch.zeros(*shape, dtype=dtype, device=device)
            for shape, dtype in zip(((rows, inputs), (outputs, inputs)), dtypes, strict=True)
        )
        return few_rows(x, weight)

    half, other, single = torch.bfloat16, torch.float16, torch.float32
    assert serve(1, 128, 128, half, half) and serve(64, 384, 640, other, other)
    assert not serve(65, 128, 128, half, half)
    assert not serve(1, 192, 128, half, half)  # of gate, half a tile is left
    assert not serve(1, 128, 192, half, half)
    assert not serve(1, 128, 128, single, single)
    assert not serve(1, 128, 128, half, other)


def test_they_serve_nothing_where_kernels_run_as_plain_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    x = torch.zeros(1, 128, dtype=torch.bfloat16)
    assert not few_rows(x, x.expand(128, 128))


@pytest.mark.parametrize(("capability", "served"), [((9, 0), True), ((8, 6), False)])
def test_they_serve_on_the_gpus_they_were_written_for(
    capability: tuple[int, int], served: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton", reason="Triton has no build for this platform")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    with FakeTensorMode():
        x = torch.zeros(1, 128, dtype=torch.bfloat16, device="cuda")
        assert few_rows(x, x.expand(128, 128)) == served


# In layers --------------------------------------------------------------------------------------

SHAPE = TransformerConfig(2, 256, 4, 2, 32, 384, 1e4, 1e-6, 64)


def outputs_of_layers(layers: list[DecoderLayer], x: Tensor) -> Tensor:
    """Of one position of each row, by the layers and their norm, with queries in place of what they
    attend to."""
    rope, slots = Rope(SHAPE, 64, x.device), torch.arange(len(x), device=x.device)
    tables = slots.int().unsqueeze(1)

    def attend(index: int, parts: Tensor, norm: Tensor) -> Tensor:
        pages = x.new_zeros(len(x), 2, SHAPE.kv_heads, 16, SHAPE.head_dim)
        where = pages, tables, slots, slots % 16
        return rope_and_store(parts, norm, rope.cos, rope.sin, *where, SHAPE.norm_eps).flatten(1)

    last = RMSNorm(x.new_ones(SHAPE.hidden), SHAPE.norm_eps)
    return fused.fused_layers(layers, last, x, attend)


@pytest.mark.parametrize(("rows", "dtype"), [(9, torch.bfloat16), (17, torch.float16)])
def test_layers_with_them_are_layers_without(
    rows: int,
    dtype: torch.dtype,
    device: torch.device,
    random: Random,
    close: Check,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = RandomWeights(device=device, dtype=dtype, stored=torch.bfloat16)
    layers = [DecoderLayer(SHAPE, weights, f"layers.{index}") for index in range(SHAPE.layers)]
    x, shapes = random(rows, SHAPE.hidden, dtype=dtype), list[torch.Size]()

    def seen(product: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def run(*given: Any) -> Tensor:
            shapes.append((out := product(*given)).shape)
            return out

        return run

    monkeypatch.setattr(products, "FEWEST_PROGRAMS", 1)
    monkeypatch.setattr(fused, "split_k_product", seen(split_k_product))
    monkeypatch.setattr(fused, "swiglu_product", seen(swiglu_product))
    found = outputs_of_layers(layers, x)
    each = [(2, rows, 256), (1, rows, 256), (rows, 384), (1, rows, 256)]
    assert shapes == each * SHAPE.layers
    monkeypatch.setattr(fused, "few_rows", lambda *_: False)
    close(found, outputs_of_layers(layers, x))
    assert len(shapes) == 4 * SHAPE.layers
