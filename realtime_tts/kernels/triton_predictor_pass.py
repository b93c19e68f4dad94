"""The Triton twin of `predictor_pass.py`: one launch whose programs go from phase to phase.

There are as many programs as multiprocessors, and each computes its tiles of columns of every
product. A layer is five phases:

    qkv         input norm and the fused product
    attend      head norm, rotation, keys and values into the pages, attention
    output      attention's product, plus the residual
    gate_up     output norm, gate and up, SwiGLU
    down        the last product, plus the residual

and behind the last layer comes `head`: last norm and logits. A phase needs what other programs
wrote in the one before, so between them lies a barrier: a counter in global memory that each program
adds one to when it is done, and looks at until all have. Attention has few work items, so whoever
has none goes straight on to wait for those who have, at a counter of their own.

The time of a phase would be: wait at the barrier, wait for the weights, multiply. But weights do not
depend on the barrier. A program arrives, loads its tiles of the next phase into registers, asks for
those of the phase after that to be brought into the L2 cache, and then waits. Norms are computed by
every program for itself, which takes less time than another barrier.

Counters only grow and wrap around; where they stood before a pass is kept beside them, and the first
program moves that on at the end. So a captured pass can be replayed without anybody's reset.

What other programs write is read past the L1 cache (`.cg`), which nobody keeps coherent. The barrier
is a release by one thread behind a barrier of its own program, and an acquire by one in front of
another: the pattern of cooperative groups' grid.sync().

Programs that wait for programs that were never started would wait for ever. So the launch is a
cooperative one: the driver starts all programs at once, or refuses.

One row or two are multiplied and added (the weights stay where they were loaded); from `DOT_FROM`
on tensor cores do it, each warp with a part of the inputs.
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

WARPS = 8
DOT_FROM = 3
"""Rows from which on tensor cores multiply; they take 16 at a time, so few rows are mostly padding."""
CHUNK, DOT_CHUNK = 128, 1024
"""Inputs of a piece, multiplied or for tensor cores. A load of fewer numbers than a program has
threads takes the layout of what it is multiplied with: no exchange between threads."""
COOPERATIVE = True
PREFETCH = True
"""Whether the weights of the phase after the next are brought into the L2 cache."""

_QKV, _ATTEND, _OUTPUT, _GATE_UP, _DOWN, _HEAD, _ALL = (tl.constexpr(kind) for kind in range(7))
_STORE, _ADD, _SWIGLU = (tl.constexpr(end) for end in range(3))
_FIELDS = tl.constexpr(7)  # of a PassLayer
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
    longest = DOT_CHUNK if dot else CHUNK
    return {
        "PROGRAMS": programs, "COUNT": count, "DOT": dot,
        "PAD": max(16, triton.next_power_of_2(rows)) if dot else 1,
        "ROUNDS": 1 if dot else rows,
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


# Weights -----------------------------------------------------------------------------------------


@triton.jit
def _weights(table, layer, FIELD: tl.constexpr, x):
    """Where a layer's weights of this kind lie."""
    address = tl.load(table + layer * _FIELDS + FIELD)
    return tl.multiple_of(address.to(x.dtype), 16)


@triton.jit
def _tile_rows(tile, TILE: tl.constexpr, SIDES: tl.constexpr, SIDE: tl.constexpr):
    """The rows of the weights [TILE * SIDES] that make a tile; of two sides, they alternate."""
    at = tl.arange(0, TILE * SIDES)
    if SIDES == 2:
        at = at % 2 * SIDE + at // 2
    return tile * TILE + at


@triton.jit
def _load_tiles(
    weights, COLUMNS: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr, SIDES: tl.constexpr,
    CHUNK: tl.constexpr, PROGRAMS: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """All pieces of this program's tiles, those of a tile together, K in order: for tensor cores
    [parts, rows, part], a part for each warp, else [rows, CHUNK]."""
    pieces = ()
    for index in tl.static_range((COLUMNS // TILE + PROGRAMS - 1) // PROGRAMS):
        tile = tl.program_id(0) + index * PROGRAMS
        rows = _tile_rows(tile, TILE, SIDES, COLUMNS)
        if DOT:
            source = weights + rows[None, :, None] * K + _inner(CHUNK)
        else:
            source = weights + rows[:, None] * K + tl.arange(0, CHUNK)[None, :]
        for chunk in tl.static_range(K // CHUNK):
            pieces = pieces + (tl.load(source + chunk * CHUNK, mask=tile < COLUMNS // TILE),)
    return pieces


@triton.jit
def _inner(CHUNK: tl.constexpr):
    """Where the inputs of a chunk lie, [parts, 1, part]."""
    PART: tl.constexpr = _part(CHUNK)
    part = tl.arange(0, CHUNK // PART)[:, None, None] * PART
    return part + tl.arange(0, PART)[None, None, :]


@triton.constexpr_function
def _part(chunk):
    """Inputs of a warp: there are eight, and a product takes sixteen at least."""
    return max(16, chunk // 8)


@triton.jit
def _fetch_tiles(
    weights, COLUMNS: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr, SIDES: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Ask for what `_load_tiles` will load, as far as the L2 cache."""
    LINE: tl.constexpr = 1024 // weights.dtype.element_ty.primitive_bitwidth
    LINES: tl.constexpr = _fetched(K // LINE)
    for index in tl.static_range((COLUMNS // TILE + PROGRAMS - 1) // PROGRAMS):
        tile = tl.program_id(0) + index * PROGRAMS
        if tile < COLUMNS // TILE:
            rows = _tile_rows(tile, TILE, SIDES, COLUMNS)[:, None]
            for first in tl.static_range(0, K // LINE, LINES):
                line = first + tl.arange(0, LINES)[None, :]
                tl.inline_asm_elementwise(
                    "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l",
                    [weights + rows * K + line * LINE],
                    dtype=tl.int32, is_pure=False, pack=1,
                )  # fmt: skip


@triton.constexpr_function
def _fetched(lines):
    """The largest power of two that divides the lines of a row."""
    return max(lines & -lines, 1)


# Phases ------------------------------------------------------------------------------------------


@triton.jit
def _load_inputs(
    source, first, rows, norm, eps, K: tl.constexpr, CHUNK: tl.constexpr, PAD: tl.constexpr,
    NORM: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """Rows of `source` from `first` on, below `rows`, after an RMSNorm if NORM: pieces of its type,
    [parts, PAD, part] for tensor cores, else [1, CHUNK]."""
    kind = source.dtype.element_ty
    if DOT:
        row = first + tl.arange(0, PAD)[None, :, None]
        inner = _inner(CHUNK)
        place = source + row * K + inner
        mask = row < rows
    else:
        inner = tl.arange(0, CHUNK)[None, :]
        place = source + first * K + inner
        mask = first < rows
    pieces = ()
    for chunk in tl.static_range(K // CHUNK):
        piece = tl.load(place + chunk * CHUNK, mask=mask, other=0.0, cache_modifier=".cg")
        pieces = pieces + (piece,)
    if NORM:
        if DOT:
            squares = tl.zeros([PAD], tl.float32)
            for chunk in tl.static_range(K // CHUNK):
                wide = pieces[chunk].to(tl.float32)
                squares += tl.sum(tl.sum(wide * wide, 2), 0)
            scale = tl.rsqrt(squares / K + eps)[None, :, None]
        else:
            squares = tl.zeros([1, CHUNK], tl.float32)
            for chunk in tl.static_range(K // CHUNK):
                wide = pieces[chunk].to(tl.float32)
                squares += wide * wide
            scale = tl.rsqrt(tl.sum(tl.sum(squares, 1), 0) / K + eps)
        normed = ()
        for chunk in tl.static_range(K // CHUNK):
            weights = tl.load(norm + chunk * CHUNK + inner).to(tl.float32)
            normed = normed + ((pieces[chunk].to(tl.float32) * scale * weights).to(kind),)
        pieces = normed
    return pieces


@triton.jit
def _multiply(
    inputs, tiles, FIRST: tl.constexpr, CHUNKS: tl.constexpr, CHUNK: tl.constexpr,
    PAD: tl.constexpr, ROWS: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """[PAD, ROWS] float32: the inputs' pieces times those of the tile that begins at FIRST."""
    if DOT:
        sums = tl.zeros([CHUNK // _part(CHUNK), PAD, ROWS], tl.float32)
        for chunk in tl.static_range(CHUNKS):
            turned = tl.permute(tiles[FIRST + chunk], (0, 2, 1))
            sums = tl.dot(inputs[chunk], turned, sums, input_precision="ieee")
        result = tl.sum(sums, 0)
    else:
        products = tl.zeros([ROWS, CHUNK], tl.float32)
        for chunk in tl.static_range(CHUNKS):
            products += tiles[FIRST + chunk].to(tl.float32) * inputs[chunk].to(tl.float32)
        result = tl.sum(products, 1)[None, :]
    return result


@triton.jit
def _product(
    source, norm, target, tiles, rows, eps, COLUMNS: tl.constexpr, K: tl.constexpr,
    TILE: tl.constexpr, CHUNK: tl.constexpr, END: tl.constexpr, NORM: tl.constexpr,
    PROGRAMS: tl.constexpr, PAD: tl.constexpr, ROUNDS: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """This program's columns of source @ weights.T, into `target` [rows, COLUMNS] as END says."""
    SIDES: tl.constexpr = 2 if END == _SWIGLU else 1
    kind = target.dtype.element_ty
    for first in tl.static_range(ROUNDS):
        inputs = _load_inputs(source, first, rows, norm, eps, K, CHUNK, PAD, NORM, DOT)
        for index in tl.static_range((COLUMNS // TILE + PROGRAMS - 1) // PROGRAMS):
            tile = tl.program_id(0) + index * PROGRAMS
            row = first + tl.arange(0, PAD)[:, None]
            place = target + row * COLUMNS + tile * TILE + tl.arange(0, TILE)[None, :]
            mask = (row < rows) & (tile < COLUMNS // TILE)
            sums = _multiply(
                inputs, tiles, index * (K // CHUNK), K // CHUNK, CHUNK, PAD, TILE * SIDES, DOT
            ).to(kind)
            if END == _ADD:
                residual = tl.load(place, mask=mask, other=0.0, cache_modifier=".cg")
                sums = (residual.to(tl.float32) + sums.to(tl.float32)).to(kind)
            if END == _SWIGLU:
                gate, up = tl.split(tl.reshape(sums, [PAD, TILE, 2]))
                gate = gate.to(tl.float32)
                sums = (gate * tl.sigmoid(gate) * up.to(tl.float32)).to(kind)
            tl.store(place, sums, mask=mask)


@triton.jit
def _turned(source, norm, cos, sin, at, eps, HALF: tl.constexpr):
    """Heads [heads, 2 * HALF] at `source`, after norm and rotation, as two halves of its type."""
    first = tl.load(source + at, cache_modifier=".cg").to(tl.float32)
    second = tl.load(source + HALF + at, cache_modifier=".cg").to(tl.float32)
    scale = tl.rsqrt(tl.sum(first * first + second * second, 1) / (2 * HALF) + eps)[:, None]
    first = first * scale * tl.load(norm + at).to(tl.float32)
    second = second * scale * tl.load(norm + HALF + at).to(tl.float32)
    c = tl.load(cos + at).to(tl.float32)
    # The second half of the signed sine is the sine itself.
    s = tl.load(sin + HALF + at).to(tl.float32)
    kind = source.dtype.element_ty
    return (first * c - second * s).to(kind), (second * c + first * s).to(kind)


@triton.jit
def _attend(
    qkv, norm, cos, sin, pages, attended, slots, position, eps, scale,
    HEADS: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr, LENGTH: tl.constexpr,
    STEPS: tl.constexpr, COUNT: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """The query heads of one key head, of one slot after the other: all its new positions."""
    HALF: tl.constexpr = DIM // 2
    GROUP: tl.constexpr = HEADS // KEYS
    at = tl.arange(0, HALF)[None, :]
    step = tl.arange(0, STEPS)[:, None]
    member = tl.arange(0, GROUP)[:, None]
    for item in range(tl.program_id(0), slots * KEYS, PROGRAMS):
        slot, head = item // KEYS, item % KEYS
        # Of the page, the positions that were there before; the new ones are put in by hand.
        page = pages + (slot * 2 * KEYS + head) * LENGTH * DIM
        place, seen = page + step * DIM + at, (step < position) & (at >= 0)
        VALUES: tl.constexpr = KEYS * LENGTH * DIM
        key = tl.load(place, mask=seen, other=0.0)
        other_key = tl.load(place + HALF, mask=seen, other=0.0)
        value = tl.load(place + VALUES, mask=seen, other=0.0)
        other_value = tl.load(place + VALUES + HALF, mask=seen, other=0.0)
        for index in tl.static_range(COUNT):
            now = position + index
            row = index * slots + slot
            heads = qkv + row * (HEADS + 2 * KEYS) * DIM
            c, s = cos + now * DIM, sin + now * DIM
            own = page + now * DIM + at
            k, other_k = _turned(
                heads + (HEADS + head) * DIM, norm + (HEADS + head) * DIM, c, s, at, eps, HALF
            )
            v = tl.load(heads + (HEADS + KEYS + head) * DIM + at, cache_modifier=".cg")
            other_v = tl.load(
                heads + (HEADS + KEYS + head) * DIM + HALF + at, cache_modifier=".cg"
            )
            tl.store(own, k)
            tl.store(own + HALF, other_k)
            tl.store(own + VALUES, v)
            tl.store(own + VALUES + HALF, other_v)
            key, other_key = tl.where(step == now, k, key), tl.where(step == now, other_k, other_key)
            value = tl.where(step == now, v, value)
            other_value = tl.where(step == now, other_v, other_value)
            offset = (head * GROUP + member) * DIM
            q, other_q = _turned(heads + offset, norm + offset, c, s, at, eps, HALF)
            scores = _scores(q, key) + _scores(other_q, other_key)
            scores = tl.where(tl.arange(0, STEPS)[None, :] <= now, scores * scale, float("-inf"))
            weights = tl.exp2(scores - tl.max(scores, 1)[:, None])
            weights = (weights / tl.sum(weights, 1)[:, None])[:, :, None]
            result = attended + row * HEADS * DIM + offset + at
            kind = attended.dtype.element_ty
            tl.store(result, tl.sum(weights * value.to(tl.float32)[None], 1).to(kind))
            mean = tl.sum(weights * other_value.to(tl.float32)[None], 1)
            tl.store(result + HALF, mean.to(kind))


@triton.jit
def _scores(query, key):
    """[heads, steps] of query [heads, D] and key [steps, D]."""
    return tl.sum(query.to(tl.float32)[:, None, :] * key.to(tl.float32)[None, :, :], 2)


# The whole ---------------------------------------------------------------------------------------


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
    PAD: tl.constexpr, ROUNDS: tl.constexpr, HEADS: tl.constexpr, KEYS: tl.constexpr,
    DIM: tl.constexpr, LENGTH: tl.constexpr, STEPS: tl.constexpr,
    HIDDEN: tl.constexpr, WIDE: tl.constexpr, VOCAB: tl.constexpr,
    QKV_TILE: tl.constexpr, HIDDEN_TILE: tl.constexpr, WIDE_TILE: tl.constexpr,
    VOCAB_TILE: tl.constexpr, HIDDEN_CHUNK: tl.constexpr, HEADS_CHUNK: tl.constexpr,
    WIDE_CHUNK: tl.constexpr, PREFETCH: tl.constexpr,
):  # fmt: skip
    """The layers from `first` to `last`: one phase of each, or all and the head behind them."""
    ALL: tl.constexpr = KIND == _ALL
    FUSED: tl.constexpr = (HEADS + 2 * KEYS) * DIM
    QUERIES: tl.constexpr = HEADS * DIM
    HEAD_ROUNDS: tl.constexpr = ROUNDS // COUNT if ROUNDS > 1 else 1
    rows = slots * COUNT
    counter, attention = barrier, barrier + 2 * _WORDS
    if ALL:
        target = tl.load(counter + _WORDS, cache_modifier=".cg")
        attended_target = tl.load(attention + _WORDS, cache_modifier=".cg")
        attending = tl.minimum(slots * KEYS, PROGRAMS)
    for layer in range(first, last):
        if ALL or KIND == _QKV:
            tiles = _load_tiles(
                _weights(table, layer, 1, x), FUSED, HIDDEN, QKV_TILE, 1, HIDDEN_CHUNK, PROGRAMS, DOT
            )
            if ALL:
                if PREFETCH:
                    output_weights = _weights(table, layer, 3, x)
                    _fetch_tiles(output_weights, HIDDEN, QUERIES, HIDDEN_TILE, 1, PROGRAMS)
                _wait(counter, target)
            _product(
                x, _weights(table, layer, 0, x), qkv, tiles, rows, eps, FUSED, HIDDEN, QKV_TILE,
                HIDDEN_CHUNK, _STORE, True, PROGRAMS, PAD, ROUNDS, DOT,
            )  # fmt: skip
            if ALL:
                _arrive(counter)
                target += PROGRAMS
        if ALL or KIND == _OUTPUT:
            tiles = _load_tiles(
                _weights(table, layer, 3, x), HIDDEN, QUERIES, HIDDEN_TILE, 1, HEADS_CHUNK, PROGRAMS,
                DOT,
            )  # fmt: skip
            if ALL and PREFETCH:
                gate_up = _weights(table, layer, 5, x)
                _fetch_tiles(gate_up, WIDE, HIDDEN, WIDE_TILE, 2, PROGRAMS)
        if ALL or KIND == _ATTEND:
            if tl.program_id(0) < slots * KEYS:
                if ALL:
                    _wait(counter, target)
                _attend(
                    qkv, _weights(table, layer, 2, x), cos, sin,
                    pages + layer * layer_stride, attended,
                    slots, position, eps, scale, HEADS, KEYS, DIM, LENGTH, STEPS, COUNT, PROGRAMS,
                )  # fmt: skip
                if ALL:
                    _arrive(attention)
        if ALL or KIND == _OUTPUT:
            if ALL:
                attended_target += attending
                _wait(attention, attended_target)
            _product(
                attended, norm, x, tiles, rows, eps, HIDDEN, QUERIES, HIDDEN_TILE, HEADS_CHUNK,
                _ADD, False, PROGRAMS, PAD, ROUNDS, DOT,
            )  # fmt: skip
            if ALL:
                _arrive(counter)
                target += PROGRAMS
        if ALL or KIND == _GATE_UP:
            tiles = _load_tiles(
                _weights(table, layer, 5, x), WIDE, HIDDEN, WIDE_TILE, 2, HIDDEN_CHUNK, PROGRAMS, DOT
            )
            if ALL:
                if PREFETCH:
                    down = _weights(table, layer, 6, x)
                    _fetch_tiles(down, HIDDEN, WIDE, HIDDEN_TILE, 1, PROGRAMS)
                _wait(counter, target)
            _product(
                x, _weights(table, layer, 4, x), wide, tiles, rows, eps, WIDE, HIDDEN, WIDE_TILE,
                HIDDEN_CHUNK, _SWIGLU, True, PROGRAMS, PAD, ROUNDS, DOT,
            )  # fmt: skip
            if ALL:
                _arrive(counter)
                target += PROGRAMS
        if ALL or KIND == _DOWN:
            tiles = _load_tiles(
                _weights(table, layer, 6, x), HIDDEN, WIDE, HIDDEN_TILE, 1, WIDE_CHUNK, PROGRAMS, DOT
            )
            if ALL:
                if PREFETCH:
                    if layer + 1 < last:
                        following = _weights(table, layer + 1, 1, x)
                        _fetch_tiles(following, FUSED, HIDDEN, QKV_TILE, 1, PROGRAMS)
                    else:
                        _fetch_tiles(head, VOCAB, HIDDEN, VOCAB_TILE, 1, PROGRAMS)
                _wait(counter, target)
            _product(
                wide, norm, x, tiles, rows, eps, HIDDEN, WIDE, HIDDEN_TILE, WIDE_CHUNK,
                _ADD, False, PROGRAMS, PAD, ROUNDS, DOT,
            )  # fmt: skip
            if ALL:
                _arrive(counter)
                target += PROGRAMS
    if ALL or KIND == _HEAD:
        tiles = _load_tiles(head, VOCAB, HIDDEN, VOCAB_TILE, 1, HIDDEN_CHUNK, PROGRAMS, DOT)
        if ALL:
            _wait(counter, target)
            if tl.program_id(0) == 0:
                # Everybody has read where the counters stood, and nobody adds to them any more.
                tl.store(counter + _WORDS, target)
                tl.store(attention + _WORDS, attended_target)
        _product(
            x + (rows - slots) * HIDDEN, norm, logits, tiles, slots, eps, VOCAB, HIDDEN, VOCAB_TILE,
            HIDDEN_CHUNK, _STORE, True, PROGRAMS, PAD, HEAD_ROUNDS, DOT,
        )  # fmt: skip
