"""Products whose rows do not know of each other."""

from __future__ import annotations

import pytest
import torch

from realtime_tts.model import linear
from realtime_tts.model.linear import Linear, invariant_row_floor

SHAPES = [(96, 320), (256, 512), (768, 256), (2048, 64), (112, 112)]


def parameters(inputs: int, outputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers that half precision holds."""
    generator = torch.Generator().manual_seed(inputs)
    weight = torch.randn(outputs, inputs, generator=generator).bfloat16().float()
    return weight, torch.randn(outputs, generator=generator)


@pytest.fixture(params=["half", "packed", "padded", "row by row"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The four ways a product is carried out on the CPU."""
    if request.param != "half":
        monkeypatch.setattr(linear, "half_serves", lambda weight: False)
    if request.param == "padded":
        monkeypatch.setattr(linear, "invariant_row_floor", lambda *shape: 4)
    elif request.param == "row by row":
        monkeypatch.setattr(linear, "invariant_row_floor", lambda *shape: None)
    return str(request.param)


@pytest.mark.parametrize(("inputs", "outputs"), SHAPES)
def test_a_row_has_the_same_bits_in_any_batch(inputs: int, outputs: int, way: str) -> None:
    product = Linear(*parameters(inputs, outputs))
    rows = torch.randn(40, inputs, generator=torch.Generator().manual_seed(1))
    whole = product(rows)
    floor = 1 if way != "packed" else invariant_row_floor(inputs, outputs, torch.get_num_threads())
    assert floor is not None, "this machine's packed products are not row-independent"
    for count in (1, 2, 3, 5, 8, 13, 16, 17, 31):
        for start in (0, 40 - count):
            assert torch.equal(product(rows[start : start + count]), whole[start : start + count])


@pytest.mark.parametrize(("inputs", "outputs"), SHAPES)
def test_it_is_the_plain_product(inputs: int, outputs: int, way: str) -> None:
    weight, bias = parameters(inputs, outputs)
    x = torch.randn(2, 3, inputs, generator=torch.Generator().manual_seed(1))
    found = Linear(weight, bias)(x)
    assert found.shape == (2, 3, outputs)
    torch.testing.assert_close(found, x @ weight.t() + bias, atol=1e-3, rtol=1e-5)


def test_other_precisions_are_left_to_torch() -> None:
    weight, bias = (part.bfloat16() for part in parameters(64, 32))
    x = torch.randn(3, 64).bfloat16()
    assert torch.equal(Linear(weight, bias)(x), torch.nn.functional.linear(x, weight, bias))


def test_where_packing_is_unavailable_only_exact_rows_go_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linear, "half_serves", lambda weight: False)
    monkeypatch.setattr(linear, "packing_available", lambda: False)
    monkeypatch.setattr(linear, "invariant_row_floor", lambda *shape: None)
    weight, bias = parameters(96, 320)
    x = torch.randn(5, 96)
    plain = torch.nn.functional.linear
    single = torch.cat([plain(row[None], weight, bias) for row in x])
    assert torch.equal(Linear(weight, bias)(x), single)
    assert torch.equal(Linear(weight, bias, exact_rows=False)(x), plain(x, weight, bias))


def test_a_shape_that_is_never_independent_goes_row_by_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The probe notices products that depend on the number of rows."""
    monkeypatch.setattr(
        linear, "packed_product", lambda x, packed, bias: torch.full((len(x), 8), float(len(x)))
    )
    assert invariant_row_floor.__wrapped__(48, 8, torch.get_num_threads()) is None


def test_a_shape_that_differs_for_one_row_is_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        linear, "packed_product", lambda x, packed, bias: torch.full((len(x), 8), len(x) >= 3)
    )
    assert invariant_row_floor.__wrapped__(48, 8, torch.get_num_threads()) == 4
