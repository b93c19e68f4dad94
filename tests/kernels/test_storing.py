"""Keys and values find their places in the pages, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import rope_and_store, store_prefix
from realtime_tts.model.config import TransformerConfig
from realtime_tts.model.layers import RMSNorm, Rope, rotate

Random = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]
Make = Callable[..., Any]  # conftest.Layer

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
EPS = 1e-6


def rope(dim: int, device: torch.device) -> Rope:
    config = TransformerConfig(1, 64, 4, 2, dim, 64, 1e4, EPS, 512)
    return Rope(config, 64, device)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("group", "kv_heads", "dim"), [(1, 1, 16), (2, 3, 24), (4, 2, 32), (8, 1, 128)]
)
def test_rope_and_store_equals_its_plain_twin(
    group: int,
    kv_heads: int,
    dim: int,
    dtype: torch.dtype,
    random: Random,
    make_layer: Make,
    close: Check,
) -> None:
    layer = make_layer([9, 4, 13], kv_heads=kv_heads, dim=dim, dtype=dtype)
    heads = group * kv_heads
    qkv = random(4, heads + 2 * kv_heads, dim, dtype=dtype)
    norm = random(heads + kv_heads, dim, dtype=dtype)
    tables = rope(dim, qkv.device)
    slots, positions = layer.ints(2, 0, 1, layer.scratch), layer.ints(12, 4, 3, 0)
    pages = [layer.pages.clone(), layer.pages.clone()]
    runs: list[Callable[..., Tensor]] = [rope_and_store, rope_and_store.plain]
    queries = [
        run(qkv[None], norm, tables.cos, tables.sin, into, layer.tables, slots, positions, EPS)
        for run, into in zip(runs, pages, strict=True)
    ]
    close(*queries)
    close(*pages)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", [rope_and_store, rope_and_store.plain])
def test_parts_are_added_up_and_rounded_before_the_norm(
    kernel: Callable[..., Tensor], dtype: torch.dtype, random: Random, make_layer: Make
) -> None:
    layer = make_layer([9, 4], dtype=dtype)
    parts, norm = random(4, 2, 8, 16), random(6, 16, dtype=dtype)
    summed = (parts[0] + parts[1] + parts[2] + parts[3]).to(dtype)
    tables, rows = rope(16, parts.device), (layer.ints(0, 1), layer.ints(7, 2))
    pages = [layer.pages.clone(), layer.pages.clone()]
    queries = [
        kernel(given, norm, tables.cos, tables.sin, into, layer.tables, *rows, EPS)
        for given, into in zip((parts, summed[None]), pages, strict=True)
    ]
    assert queries[0].dtype == dtype
    assert torch.equal(*queries) and torch.equal(*pages)
    assert not torch.equal(pages[0], layer.pages)


@pytest.mark.parametrize("kernel", [rope_and_store, rope_and_store.plain])
def test_it_does_what_a_decoder_layer_does(
    kernel: Callable[..., Tensor], random: Random, make_layer: Make, close: Check
) -> None:
    layer = make_layer([9, 4])
    qkv, norm = random(2, 8, 16), random(6, 16)
    tables, positions = rope(16, qkv.device), layer.ints(7, 2)
    fused = qkv.clone()
    turning = fused[:, :6]
    cos, sin = tables.cos[positions].unsqueeze(1), tables.sin[positions].unsqueeze(1)
    rotate(RMSNorm(norm, EPS)(turning), cos, sin, out=turning)
    query = kernel(
        qkv[None],
        norm,
        tables.cos,
        tables.sin,
        layer.pages,
        layer.tables,
        layer.ints(0, 1),
        positions,
        EPS,
    )
    close(query, fused[:, :4])
    for row, (slot, page, offset) in enumerate([(0, 1, 3), (1, 0, 2)]):
        place = layer.pages[layer.tables[slot, page], :, :, offset]
        close(place, fused[row, 4:].view(2, 2, 16))


@pytest.mark.parametrize("kernel", [rope_and_store, rope_and_store.plain])
@pytest.mark.parametrize("position", [0, -1])
def test_a_padding_row_writes_to_the_scratch_page_only(
    kernel: Callable[..., Tensor], position: int, random: Random, make_layer: Make
) -> None:
    layer = make_layer([9, 4])
    before, tables = layer.pages.clone(), rope(16, layer.pages.device)
    rows = (layer.ints(*[layer.scratch] * 3), layer.ints(*[position] * 3))
    query = kernel(
        random(1, 3, 8, 16),
        random(6, 16),
        tables.cos,
        tables.sin,
        layer.pages,
        layer.tables,
        *rows,
        EPS,
    )
    assert torch.equal(layer.pages[1:], before[1:])
    assert not torch.equal(layer.pages[0], before[0])
    assert query.isfinite().all()


@pytest.mark.parametrize("kernel", [store_prefix, store_prefix.plain])
@pytest.mark.parametrize("count", [3, 4, 9])
def test_a_kept_prefix_is_stored_in_every_slot_and_nowhere_else(
    kernel: Callable[..., None], count: int, random: Random, make_layer: Make
) -> None:
    layer = make_layer([12, 9, 20], kv_heads=3, dim=24)
    pages = torch.stack((layer.pages, layer.pages + 1))
    before, kept = pages.clone(), random(2, 2, 3, count + 5, 24)
    given = layer.ints(5, 2, 0), layer.ints(count, count - 1, 0)
    kernel(kept, *given, pages, layer.tables, layer.ints(2, 0, 1))
    for slot, first, length in ((2, 5, count), (0, 2, count - 1)):
        for position in range(length):
            page, place = layer.tables[slot, position // 4], position % 4
            assert torch.equal(pages[:, page, :, :, place], kept[:, :, :, first + position])
            before[:, page, :, :, place] = kept[:, :, :, first + position]
    assert torch.equal(pages, before)
