"""The phase of `triton_predictor_pass.py` between queries, keys and values and their attention."""

from __future__ import annotations

import triton
import triton.language as tl


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
def attend(
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
            other_v = tl.load(heads + (HEADS + KEYS + head) * DIM + HALF + at, cache_modifier=".cg")
            tl.store(own, k)
            tl.store(own + HALF, other_k)
            tl.store(own + VALUES, v)
            tl.store(own + VALUES + HALF, other_v)
            key, other_key = (
                tl.where(step == now, k, key),
                tl.where(step == now, other_k, other_key),
            )
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
