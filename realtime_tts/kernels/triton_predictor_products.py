"""Phases of `triton_predictor_pass.py` that are products, and the weights they take."""

from __future__ import annotations

import triton
import triton.language as tl

STORE, ADD, SWIGLU = (tl.constexpr(end) for end in range(3))
"""What becomes of the sums: they are stored, added to what is there, or go through SwiGLU."""

_FIELDS = tl.constexpr(7)  # of a PassLayer


@triton.jit
def weights_at(table, layer, FIELD: tl.constexpr, x):
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
def load_tiles(
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
def fetch_tiles(
    weights, COLUMNS: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr, SIDES: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Ask for what `load_tiles` will load, as far as the L2 cache."""
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


@triton.jit
def load_layer(
    table, layer, FIELD: tl.constexpr, x, COLUMNS: tl.constexpr, K: tl.constexpr,
    TILE: tl.constexpr, SIDES: tl.constexpr, CHUNK: tl.constexpr, PROGRAMS: tl.constexpr,
    DOT: tl.constexpr,
):  # fmt: skip
    """`load_tiles` of a layer's weights of this kind."""
    weights = weights_at(table, layer, FIELD, x)
    return load_tiles(weights, COLUMNS, K, TILE, SIDES, CHUNK, PROGRAMS, DOT)


@triton.jit
def fetch_layer(
    table, layer, FIELD: tl.constexpr, x, COLUMNS: tl.constexpr, K: tl.constexpr,
    TILE: tl.constexpr, SIDES: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """`fetch_tiles` of a layer's weights of this kind."""
    fetch_tiles(weights_at(table, layer, FIELD, x), COLUMNS, K, TILE, SIDES, PROGRAMS)


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
        # Asked for before the sums of squares: both travel at the same time.
        weights = ()
        for chunk in tl.static_range(K // CHUNK):
            weights = weights + (tl.load(norm + chunk * CHUNK + inner),)
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
            wide = pieces[chunk].to(tl.float32) * scale * weights[chunk].to(tl.float32)
            normed = normed + (wide.to(kind),)
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
def product(
    source, norm, target, tiles, rows, eps, COLUMNS: tl.constexpr, K: tl.constexpr,
    TILE: tl.constexpr, CHUNK: tl.constexpr, END: tl.constexpr, NORM: tl.constexpr,
    PROGRAMS: tl.constexpr, PAD: tl.constexpr, ROUNDS: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """This program's columns of source @ weights.T, into `target` [rows, COLUMNS] as END says."""
    SIDES: tl.constexpr = 2 if END == SWIGLU else 1
    kind = target.dtype.element_ty
    for first in tl.static_range(0, ROUNDS * PAD, PAD):
        inputs = _load_inputs(source, first, rows, norm, eps, K, CHUNK, PAD, NORM, DOT)
        for index in tl.static_range((COLUMNS // TILE + PROGRAMS - 1) // PROGRAMS):
            tile = tl.program_id(0) + index * PROGRAMS
            row = first + tl.arange(0, PAD)[:, None]
            place = target + row * COLUMNS + tile * TILE + tl.arange(0, TILE)[None, :]
            mask = (row < rows) & (tile < COLUMNS // TILE)
            if END == ADD:
                residual = tl.load(place, mask=mask, other=0.0, cache_modifier=".cg")
            sums = _multiply(
                inputs, tiles, index * (K // CHUNK), K // CHUNK, CHUNK, PAD, TILE * SIDES, DOT
            ).to(kind)
            if END == ADD:
                sums = (residual.to(tl.float32) + sums.to(tl.float32)).to(kind)
            if END == SWIGLU:
                gate, up = tl.split(tl.reshape(sums, [PAD, TILE, 2]))
                gate = gate.to(tl.float32)
                sums = (gate * tl.sigmoid(gate) * up.to(tl.float32)).to(kind)
            tl.store(place, sums, mask=mask)
