"""Products with weights in half precision: only where nothing is lost, and only where they work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from realtime_tts.model import linear
from realtime_tts.model.linear import (
    Linear,
    half_product,
    half_serves,
    pack_half,
    row_multiple,
)


@pytest.fixture(autouse=True)
def forget_probes() -> Iterator[None]:
    row_multiple.cache_clear()
    yield
    row_multiple.cache_clear()


@pytest.fixture
def weight() -> Tensor:
    """Stored in bfloat16, with numbers below half precision's smallest normal one."""
    wide = torch.randn(96, 64, generator=torch.Generator().manual_seed(0))
    return (wide * torch.logspace(-12, 0, 64)).bfloat16().float()


def test_weights_stored_in_bfloat16_give_the_float32_product(weight: Tensor) -> None:
    assert half_serves(weight), "this machine has no products in half precision"
    x = torch.randn(3, 5, 64, generator=torch.Generator().manual_seed(1))
    bias = torch.randn(96, generator=torch.Generator().manual_seed(2))
    wanted = x.double() @ weight.double().t() + bias.double()
    for product in (half_product(x, pack_half(weight), bias), Linear(weight, bias)(x)):
        assert product.shape == (3, 5, 96)
        torch.testing.assert_close(product.double(), wanted, atol=3e-6, rtol=1e-5)


def test_weights_that_need_more_digits_are_left_alone() -> None:
    assert not half_serves(torch.randn(8, 16))


def test_a_weight_of_tiny_numbers_only_is_left_alone(weight: Tensor) -> None:
    assert not half_serves(weight * 2.0**-20)


@pytest.mark.parametrize("value", [1e6, float("inf"), float("nan")])
def test_a_weight_half_precision_cannot_hold_leaves_all_alone(weight: Tensor, value: float) -> None:
    weight[3, 5] = value
    assert not half_serves(weight)


def test_large_weights_are_left_to_several_threads(
    weight: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "_LARGEST", weight.numel() - 1)
    assert half_serves(weight)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert not half_serves(weight)
    monkeypatch.setattr(linear, "_LARGEST", weight.numel())
    assert half_serves(weight)


def test_without_the_functions_it_is_done_otherwise(
    weight: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch, "fbgemm_pack_gemm_matrix_fp16")
    assert not half_serves(weight)
    x = torch.randn(2, 64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(Linear(weight)(x), x @ weight.t())


def test_a_version_that_wants_a_bias_gets_one(
    weight: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "bias_is_optional", lambda: False)
    product, x = Linear(weight), torch.ones(2, 64)
    assert product.bias is not None
    torch.testing.assert_close(product(x), x @ weight.t())


def test_a_product_that_is_wrong_or_depends_on_the_rows_is_noticed(
    weight: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = half_product

    def by_rows(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
        return right(x, packed, bias) * (1 + 1e-6 * len(x))

    def wrong(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
        return right(x, packed, bias) * 1.1

    for product in (by_rows, wrong):
        monkeypatch.setattr(linear, "half_product", product)
        row_multiple.cache_clear()
        assert not half_serves(weight)


@pytest.mark.parametrize("multiple", [1, 3, 4])
def test_rows_are_filled_up_where_few_of_them_are_summed_in_another_order(
    weight: Tensor, monkeypatch: pytest.MonkeyPatch, multiple: int
) -> None:
    """As FBGEMM does with AVX2: what is beyond a multiple of three has kernels of its own."""

    def of_few(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
        rows = x.numel() // x.shape[-1]
        return ((x.double() @ packed.double().t()) * (1 + 1e-6 * (rows % multiple))).float()

    monkeypatch.setattr(linear, "pack_half", lambda weight: weight)
    monkeypatch.setattr(linear, "half_product", of_few)
    assert row_multiple(64, 96) == multiple
    product = Linear(weight)
    x = torch.linspace(-1, 1, 7 * 64).view(7, 64)
    whole = product(x)
    assert whole.shape == (7, 96)
    for rows in range(1, 7):
        assert torch.equal(product(x[:rows]), whole[:rows])
    assert torch.equal(product(x.view(7, 1, 64)), whole.view(7, 1, 96))
