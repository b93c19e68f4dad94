"""The Triton twin of `predictor_pass.py`: one launch whose programs go from phase to phase.

There are as many programs as multiprocessors, and each computes its tiles of columns of every
product. A layer is five phases:

    qkv         input norm and the fused product
    attend      head norm, rotation, keys and values into the pages, attention
    output      attention's product, plus the residual
    gate_up     output norm, gate and up, SwiGLU
    down        the last product, plus the residual

and behind the last layer comes `head`: last norm and logits. A phase needs what other programs
wrote in the one before, so between them lies a barrier: a counter in global memory, which each
program adds one to when it is done and then watches until all have. Attention has few work items,
so whoever has none goes straight on to wait for those who have, at a counter of their own.

A phase would be: wait at the barrier, wait for the weights, multiply. But weights do not depend on
the barrier. A program arrives, loads its tiles of the next phase into registers, asks for those of
the phase after that to be brought into the L2 cache, and then waits. Norms are computed by every
program for itself, which takes less time than another barrier.

Counters only grow, and wrap around; where they stood before a pass is kept beside them, and the
first program moves that on at the end. So a captured pass can be replayed without anybody's reset.

What other programs write is read past the L1 cache (`.cg`), which nobody keeps coherent. A barrier
is a release by one thread, behind a barrier of its own program, and an acquire by one thread, in
front of another: the pattern of cooperative groups' grid.sync().

Programs that wait for programs that were never started would wait for ever. So the launch is a
cooperative one: the driver starts all programs at once, or refuses.

One row is multiplied and added (the weights stay where they were loaded); from `DOT_FROM` rows on
tensor cores do it, 16 rows at a time, each warp with a part of the inputs.
"""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.predictor_pass import (
    MOST_PASS_ROWS,
    PassModel,
    chunk_inputs,
    tile_columns,
)
from realtime_tts.kernels.triton_predictor_attend import attend
from realtime_tts.kernels.triton_predictor_products import (
    ADD,
    STORE,
    SWIGLU,
    fetch_layer,
    fetch_tiles,
    load_layer,
    load_tiles,
    product,
    weights_at,
)

WARPS = 8
DOT_FROM = 2
"""Rows from which on tensor cores multiply. They take 16 at a time: one row is mostly padding."""
CHUNK, DOT_CHUNK = 128, 512
"""Inputs of a piece, multiplied or for tensor cores. A load of fewer numbers than a program has
threads takes the layout of what it is multiplied with: no exchange between threads."""
COOPERATIVE = True
PREFETCH = True
"""Whether the weights of the phase after the next are brought into the L2 cache."""

_QKV, _ATTEND, _OUTPUT, _GATE_UP, _DOWN, _HEAD, _ALL = (tl.constexpr(kind) for kind in range(7))
_WORDS = tl.constexpr(32)  # of a cache line


def predictor_pass(
    x: Tensor, model: PassModel, head: Tensor, pages: Tensor, position: int, count: int
) -> Tensor:
    # The interpreter runs one program after the other: there nobody could wait for the next one.
    return launch_pass(x, model, head, pages, position, count, together=x.is_cuda)


def launch_pass(
    x: Tensor,
    model: PassModel,
    head: Tensor,
    pages: Tensor,
    position: int,
    count: int,
    *,
    together: bool,
) -> Tensor:
    """`together`: as one launch; otherwise as one for each phase, without barriers."""
    layers, rows, vocab = len(model.layers), len(x), len(head)
    _check(x, model, head, pages, position, count)
    heads, kv_heads, dim = model.heads, model.kv_heads, model.head_dim
    intermediate = model.layers[0].down.shape[1]
    logits = x.new_empty(rows // count, vocab)
    if not rows:
        return logits
    qkv = x.new_empty(rows, (heads + 2 * kv_heads) * dim)
    attended = x.new_empty(rows, heads * dim)
    wide = x.new_empty(rows, intermediate)
    settings = _settings(model, rows, count, x.shape[1], intermediate, vocab, pages)
    if together and COOPERATIVE:
        settings["launch_cooperative_grid"] = True

    def launch(kind: int, first: int, last: int) -> None:
        _pass[(model.programs,)](
            x, model.table, model.norm, head, pages, model.cos, model.sin, qkv, attended, wide,
            logits, model.barrier, first, last, rows // count, position, pages.stride(0), model.eps,
            math.log2(math.e) / math.sqrt(dim), KIND=kind, **settings,
        )  # fmt: skip

    if together:
        launch(_ALL.value, 0, layers)
        return logits
    for layer in range(layers):
        for kind in (_QKV, _ATTEND, _OUTPUT, _GATE_UP, _DOWN):
            launch(kind.value, layer, layer + 1)
    launch(_HEAD.value, 0, 0)
    return logits


def _settings(
    model: PassModel, rows: int, count: int, hidden: int, intermediate: int, vocab: int,
    pages: Tensor,
) -> dict[str, Any]:  # fmt: skip
    """What the kernel is compiled for."""
    heads, kv_heads, dim = model.heads, model.kv_heads, model.head_dim
    programs, dot = model.programs, rows >= DOT_FROM
    pad, longest = (16, DOT_CHUNK) if dot else (1, CHUNK)
    return {
        "PROGRAMS": programs, "COUNT": count, "DOT": dot,
        "PAD": pad, "ROUNDS": triton.cdiv(rows, pad),
        "HEAD_ROUNDS": triton.cdiv(rows // count, pad),
        "HEADS": heads, "KEYS": kv_heads, "DIM": dim,
        "LENGTH": pages.shape[4], "STEPS": triton.next_power_of_2(pages.shape[4]),
        "HIDDEN": hidden, "WIDE": intermediate, "VOCAB": vocab,
        "QKV_TILE": tile_columns((heads + 2 * kv_heads) * dim, programs),
        "HIDDEN_TILE": tile_columns(hidden, programs),
        "WIDE_TILE": tile_columns(intermediate, programs, 2),
        "VOCAB_TILE": tile_columns(vocab, programs),
        "HIDDEN_CHUNK": chunk_inputs(hidden, longest),
        "HEADS_CHUNK": chunk_inputs(heads * dim, longest),
        "WIDE_CHUNK": chunk_inputs(intermediate, longest),
        "PREFETCH": PREFETCH, "num_warps": WARPS,
    }  # fmt: skip


def _check(
    x: Tensor, model: PassModel, head: Tensor, pages: Tensor, position: int, count: int
) -> None:
    rows = len(x)
    assert rows <= MOST_PASS_ROWS, f"{rows} rows; a program holds {MOST_PASS_ROWS} at most"
    assert rows % count == 0 and count in (1, 2) and (count == 1 or position == 0)
    assert x.is_contiguous() and head.is_contiguous() and pages[0].is_contiguous()
    assert x.dtype == head.dtype == pages.dtype == model.norm.dtype
    assert rows // count <= pages.shape[1] and position + count <= pages.shape[4]
    assert model.cos.is_contiguous() and model.sin.is_contiguous()
    assert pages.numel() < 1 << 31, "places in the pages are counted in 32 bits"


@triton.jit
def _arrive(counter):
    """What this program wrote can be seen by all who have waited for it."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release", scope="gpu")


@triton.jit
def _wait(counter, target):
    """Until the counter has come to `target`; the difference is right when both wrap around."""
    count = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    while count - target < 0:
        count = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    tl.debug_barrier()


@triton.jit(do_not_specialize=["first", "last", "slots", "position"])
def _pass(
    x, table, norm, head, pages, cos, sin, qkv, attended, wide, logits, barrier,
    first, last, slots, position, layer_stride, eps, scale,
    KIND: tl.constexpr, PROGRAMS: tl.constexpr, COUNT: tl.constexpr, DOT: tl.constexpr,
    PAD: tl.constexpr, ROUNDS: tl.constexpr, HEAD_ROUNDS: tl.constexpr,
    HEADS: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr, LENGTH: tl.constexpr,
    STEPS: tl.constexpr, HIDDEN: tl.constexpr, WIDE: tl.constexpr, VOCAB: tl.constexpr,
    QKV_TILE: tl.constexpr, HIDDEN_TILE: tl.constexpr, WIDE_TILE: tl.constexpr,
    VOCAB_TILE: tl.constexpr, HIDDEN_CHUNK: tl.constexpr, HEADS_CHUNK: tl.constexpr,
    WIDE_CHUNK: tl.constexpr, PREFETCH: tl.constexpr,
):  # fmt: skip
    """The layers from `first` to `last`: one phase of each, or all and the head behind them."""
    ALL: tl.constexpr = KIND == _ALL
    FUSED: tl.constexpr = (HEADS + 2 * KEYS) * DIM
    QUERIES: tl.constexpr = HEADS * DIM
    rows = slots * COUNT
    counter, attention = barrier, barrier + 2 * _WORDS
    if ALL:
        target = tl.load(counter + _WORDS, cache_modifier=".cg")
        attended_target = tl.load(attention + _WORDS, cache_modifier=".cg")
        attending = tl.minimum(slots * KEYS, PROGRAMS)
    for layer in range(first, last):
        if ALL or KIND == _QKV:
            input_norm = weights_at(table, layer, 0, x)
            tiles = load_layer(
                table, layer, 1, x, FUSED, HIDDEN, QKV_TILE, 1, HIDDEN_CHUNK, PROGRAMS, DOT
            )
            if ALL:
                if PREFETCH:
                    fetch_layer(table, layer, 3, x, HIDDEN, QUERIES, HIDDEN_TILE, 1, PROGRAMS)
                _wait(counter, target)
            product(
                x, input_norm, qkv, tiles, rows, eps, FUSED, HIDDEN, QKV_TILE,
                HIDDEN_CHUNK, STORE, True, PROGRAMS, PAD, ROUNDS, DOT,
            )  # fmt: skip
            if ALL:
                _arrive(counter)
                target += PROGRAMS
        if ALL or KIND == _OUTPUT:
            tiles = load_layer(
                table, layer, 3, x, HIDDEN, QUERIES, HIDDEN_TILE, 1, HEADS_CHUNK, PROGRAMS, DOT
            )
            if ALL and PREFETCH:
                fetch_layer(table, layer, 5, x, WIDE, HIDDEN, WIDE_TILE, 2, PROGRAMS)
        if ALL or KIND == _ATTEND:
            if tl.program_id(0) < slots * KEYS:
                head_norm = weights_at(table, layer, 2, x)
                if ALL:
                    _wait(counter, target)
                attend(
                    qkv, head_norm, cos, sin,
                    pages + layer * layer_stride, attended,
                    slots, position, eps, scale, HEADS, KEYS, DIM, LENGTH, STEPS, COUNT, PROGRAMS,
                )  # fmt: skip
                if ALL:
                    _arrive(attention)
        if ALL or KIND == _OUTPUT:
            if ALL:
                attended_target += attending
                _wait(attention, attended_target)
            product(
                attended, norm, x, tiles, rows, eps, HIDDEN, QUERIES, HIDDEN_TILE, HEADS_CHUNK,
                ADD, False, PROGRAMS, PAD, ROUNDS, DOT,
            )  # fmt: skip
            if ALL:
                _arrive(counter)
                target += PROGRAMS
        if ALL or KIND == _GATE_UP:
            output_norm = weights_at(table, layer, 4, x)
            tiles = load_layer(
                table, layer, 5, x, WIDE, HIDDEN, WIDE_TILE, 2, HIDDEN_CHUNK, PROGRAMS, DOT
            )
            if ALL:
                if PREFETCH:
                    fetch_layer(table, layer, 6, x, HIDDEN, WIDE, HIDDEN_TILE, 1, PROGRAMS)
                _wait(counter, target)
            product(
                x, output_norm, wide, tiles, rows, eps, WIDE, HIDDEN, WIDE_TILE,
                HIDDEN_CHUNK, SWIGLU, True, PROGRAMS, PAD, ROUNDS, DOT,
            )  # fmt: skip
            if ALL:
                _arrive(counter)
                target += PROGRAMS
        if ALL or KIND == _DOWN:
            tiles = load_layer(
                table, layer, 6, x, HIDDEN, WIDE, HIDDEN_TILE, 1, WIDE_CHUNK, PROGRAMS, DOT
            )
            if ALL:
                if PREFETCH:
                    if layer + 1 < last:
                        fetch_layer(table, layer + 1, 1, x, FUSED, HIDDEN, QKV_TILE, 1, PROGRAMS)
                    else:
                        fetch_tiles(head, VOCAB, HIDDEN, VOCAB_TILE, 1, PROGRAMS)
                _wait(counter, target)
            product(
                wide, norm, x, tiles, rows, eps, HIDDEN, WIDE, HIDDEN_TILE, WIDE_CHUNK,
                ADD, False, PROGRAMS, PAD, ROUNDS, DOT,
            )  # fmt: skip
            if ALL:
                _arrive(counter)
                target += PROGRAMS
    if ALL or KIND == _HEAD:
        tiles = load_tiles(head, VOCAB, HIDDEN, VOCAB_TILE, 1, HIDDEN_CHUNK, PROGRAMS, DOT)
        if ALL:
            _wait(counter, target)
            if tl.program_id(0) == 0:
                # Everybody has read where the counters stood, and nobody adds to them any more.
                tl.store(counter + _WORDS, target)
                tl.store(attention + _WORDS, attended_target)
        product(
            x + (rows - slots) * HIDDEN, norm, logits, tiles, slots, eps, VOCAB, HIDDEN, VOCAB_TILE,
            HIDDEN_CHUNK, STORE, True, PROGRAMS, PAD, HEAD_ROUNDS, DOT,
        )  # fmt: skip
