"""Attention to pages: each kernel against its reference, and that against attention as such."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels import decode_attention, prompt_attention
from tests.kernels.conftest import crossed

Random = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]
Make = Callable[..., Any]  # conftest.Layer

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def stored(layer: Any, slot: int, length: int) -> tuple[Tensor, Tensor]:
    """Keys and values [1, kv_heads, length, D] of a slot, position by position."""
    size = layer.pages.shape[3]
    table = layer.tables[slot].tolist()
    rows = [layer.pages[table[at // size], :, :, at % size] for at in range(length)]
    key, value = torch.stack(rows, 2).unsqueeze(1).unbind(0)
    return key, value


def attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """query [L, heads, D] -> [L, heads * D]."""
    out = F.scaled_dot_product_attention(
        query.transpose(0, 1).unsqueeze(0), key, value, attn_mask=mask, enable_gqa=True
    )
    return out[0].transpose(0, 1).flatten(1)


@pytest.mark.parametrize("kernel", [decode_attention, decode_attention.plain])
def test_a_query_attends_to_the_positions_of_its_slot(
    kernel: Callable[..., Tensor], random: Random, make_layer: Make, close: Check
) -> None:
    """Lengths around the borders of pages, slots in any order and twice."""
    layer = make_layer([9, 4, 13, 5])
    slots, lengths = (2, 0, 3, 1, 2, 0), (13, 1, 5, 4, 8, 9)
    query = random(len(slots), 4, 16)
    found = kernel(query, layer.pages, layer.tables, layer.ints(*slots), layer.ints(*lengths))
    for row, (slot, length) in enumerate(zip(slots, lengths, strict=True)):
        close(found[row], attended(query[row : row + 1], *stored(layer, slot, length))[0])


@pytest.mark.parametrize(
    ("kv_heads", "group", "dtype"), crossed([(3, 1), (2, 2), (1, 4), (1, 8)], DTYPES)
)
def test_decode_equals_its_plain_twin(
    kv_heads: int, group: int, dtype: torch.dtype, random: Random, make_layer: Make, close: Check
) -> None:
    layer = make_layer([70, 33, 100], kv_heads=kv_heads, dim=32, page_size=16, dtype=dtype)
    query = random(3, kv_heads * group, 32, dtype=dtype)
    arguments = (layer.pages, layer.tables, layer.ints(1, 0, 2), layer.ints(33, 64, 97))
    close(decode_attention(query, *arguments), decode_attention.plain(query, *arguments))


@pytest.fixture(params=[1, 2, 8, 16])
def splits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """However few the rows, a sequence is split into so many parts."""
    from realtime_tts.kernels import triton_attention

    monkeypatch.setattr(triton_attention, "split_count", lambda programs: request.param)
    return request.param


def test_any_number_of_splits_gives_the_same(
    splits: int, random: Random, make_layer: Make, close: Check
) -> None:
    layer = make_layer([150, 3, 64], page_size=8)
    query = random(5, 4, 16)
    slots, lengths = layer.ints(0, 1, 2, 0, 2), layer.ints(150, 3, 64, 149, 33)
    arguments = (layer.pages, layer.tables, slots, lengths)
    close(decode_attention(query, *arguments), decode_attention.plain(query, *arguments))


def test_many_rows_are_not_split_and_few_are() -> None:
    pytest.importorskip("triton", reason="Triton has no build for this platform")
    from realtime_tts.kernels.triton_attention import split_count

    assert [split_count(rows * 8) for rows in (1, 8, 16, 32, 1000)] == [16, 4, 1, 1, 1]


@pytest.mark.parametrize("kernel", [decode_attention, decode_attention.plain])
def test_padding_rows_are_zeros_and_disturb_nobody(
    kernel: Callable[..., Tensor], splits: int, random: Random, make_layer: Make, close: Check
) -> None:
    layer = make_layer([20])
    query, scratch = random(4, 4, 16), layer.scratch
    slots, lengths = layer.ints(scratch, 0, scratch, scratch), layer.ints(0, 20, 0, 0)
    found = kernel(query, layer.pages, layer.tables, slots, lengths)
    close(found[1], attended(query[1:2], *stored(layer, 0, 20))[0])
    assert not found[0].any() and not found[2:].any()


def test_lengths_may_leave_out_the_queries_own_position(random: Random, make_layer: Make) -> None:
    layer = make_layer([20, 9])
    query, slots = random(3, 4, 16), layer.ints(0, 1, layer.scratch)
    arguments = (query, layer.pages, layer.tables, slots)
    for kernel in (decode_attention, decode_attention.plain):
        with_own = kernel(*arguments, layer.ints(20, 5, 0))
        assert torch.equal(kernel(*arguments, layer.ints(19, 4, -1), own=1), with_own)


@pytest.mark.parametrize("kernel", [decode_attention, decode_attention.plain])
def test_what_lies_behind_a_length_is_not_read(
    kernel: Callable[..., Tensor], random: Random, make_layer: Make
) -> None:
    """Not even NaN: a failed row leaves it in pages that others get later."""
    layer = make_layer([12])
    arguments = (random(1, 4, 16), layer.pages, layer.tables, layer.ints(0), layer.ints(6))
    before = kernel(*arguments)
    layer.pages[layer.tables[0, 1], :, :, 2:] = float("nan")
    layer.pages[layer.tables[0, 2]] = float("nan")
    layer.pages[0] = float("nan")
    assert torch.equal(kernel(*arguments), before)


def test_large_scores_do_not_overflow(random: Random, make_layer: Make, close: Check) -> None:
    layer = make_layer([40])
    query = random(1, 4, 16) * 1000
    arguments = (layer.pages, layer.tables, layer.ints(0), layer.ints(40))
    close(decode_attention(query, *arguments), decode_attention.plain(query, *arguments))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_is_the_same_beside_longer_ones(
    dtype: torch.dtype, random: Random, make_layer: Make
) -> None:
    """The reference looks as far as the longest row of a batch."""
    layer = make_layer([40, 700], page_size=16, dtype=dtype)
    query, slots = random(2, 4, 16, dtype=dtype), layer.ints(0, 1)
    for length in (1, 7, 16, 33, 40):
        alone = decode_attention.plain(
            query[:1], layer.pages, layer.tables, slots[:1], layer.ints(length)
        )
        for longer in (20, 130, 700):
            lengths = layer.ints(length, longer)
            found = decode_attention.plain(query, layer.pages, layer.tables, slots, lengths)
            assert torch.equal(found[:1], alone)


def test_no_rows_are_no_error(random: Random, make_layer: Make) -> None:
    layer = make_layer([4])
    none = layer.ints().int()
    out = decode_attention(random(0, 4, 16), layer.pages, layer.tables, none, none)
    assert out.shape == (0, 64)


# Prompts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [prompt_attention, prompt_attention.plain])
def test_a_prompt_attends_causally_to_what_came_before_it_and_to_itself(
    kernel: Callable[..., Tensor], random: Random, make_layer: Make, close: Check
) -> None:
    """One behind the other, rows without queries between them and padding behind them."""
    layer = make_layer([30, 25, 7])
    scratch = layer.scratch
    rows = [
        (1, 0, 11),
        (scratch, 0, 0),
        (0, 8, 9),
        (2, 6, 1),
        (scratch, 0, 0),
    ]  # slot, start, length
    slots, starts, lengths = zip(*rows, strict=True)
    begins = [0, *accumulate(lengths)]
    query = random(25, 4, 16)
    where = layer.ints(*slots), layer.ints(*starts), layer.ints(*begins)
    found = kernel(query, layer.pages, layer.tables, *where, 12)
    for begin, (slot, start, length) in zip(begins, rows, strict=False):
        if length:
            mask = torch.ones(length, start + length, dtype=torch.bool, device=query.device)
            own = slice(begin, begin + length)
            wanted = attended(query[own], *stored(layer, slot, start + length), mask.tril(start))
            close(found[own], wanted)
    assert not found[begins[-1] :].any()


@pytest.mark.parametrize(
    ("length", "group", "dtype"), crossed([(1, 2), (16, 4), (17, 1), (90, 2)], DTYPES)
)
def test_prompts_equal_their_plain_twin(
    length: int, group: int, dtype: torch.dtype, random: Random, make_layer: Make, close: Check
) -> None:
    layer = make_layer([200, 150], dim=32, page_size=16, dtype=dtype)
    query = random(length + length // 2 + 3, 2 * group, 32, dtype=dtype)
    begins = layer.ints(0, length, length + length // 2)
    arguments = (layer.pages, layer.tables, layer.ints(1, 0), layer.ints(37, 0), begins, length)
    close(prompt_attention(query, *arguments), prompt_attention.plain(query, *arguments))


@pytest.mark.parametrize("kernel", [prompt_attention, prompt_attention.plain])
def test_a_prompt_does_not_read_behind_its_end(
    kernel: Callable[..., Tensor], random: Random, make_layer: Make
) -> None:
    layer = make_layer([12])
    rows = (layer.ints(0), layer.ints(2), layer.ints(0, 3))
    arguments = (random(6, 4, 16), layer.pages, layer.tables, *rows, 3)
    before = kernel(*arguments)
    layer.pages[layer.tables[0, 1], :, :, 1:] = float("nan")
    layer.pages[layer.tables[0, 2]] = float("nan")
    assert torch.equal(kernel(*arguments), before)
