"""The Triton kernel of `sampling.py`: a program per row, which it holds in registers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.sampling import MOST_CODES

_LOWEST = tl.constexpr(-(1 << 31))


def sample(
    logits: Tensor, temperature: Tensor, top_k: Tensor, greedy: Tensor, uniform: Tensor
) -> Tensor:
    """Run `sampling.sample`: logits [B, V] float -> [B] int64."""
    rows, vocab = logits.shape
    assert vocab <= MOST_CODES, f"{vocab} codes; a row of at most {MOST_CODES} fits"
    assert logits.stride(1) == 1
    codes = logits.new_empty(rows, dtype=torch.long)
    if rows:
        block = triton.next_power_of_2(vocab)
        _sample[(rows,)](
            logits,
            temperature,
            top_k,
            greedy,
            uniform,
            codes,
            vocab,
            logits.stride(0),
            temperature.stride(0),
            top_k.stride(0),
            greedy.stride(0),
            uniform.stride(0),
            BLOCK=block,
            num_warps=max(1, min(8, block // 512)),
        )
    return codes


@triton.jit
def _ordered(x):
    """Return int32 in the order of float32 x; both zeros become one."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def _threshold(keys, wanted, BLOCK: tl.constexpr):
    """Return the least key of the `wanted` largest: a binary search, from the highest bit down.

    It ends early where a threshold keeps just as many, which is as good as the least key itself and
    takes half the iterations. Ties with the last one kept make it go on to the end.
    """
    found = tl.full([], 0, tl.int32)  # bits of the threshold, with the sign bit turned over
    bit = tl.full([], 31, tl.int32)
    count = tl.full([], BLOCK, tl.int32)
    while (bit >= 0) & (count != wanted):
        higher = found | (tl.full([], 1, tl.int32) << bit)
        above = tl.sum((keys >= (higher ^ _LOWEST)).to(tl.int32), 0)
        count = tl.where(above >= wanted, above, count)
        found = tl.where(above >= wanted, higher, found)
        bit -= 1
    return found ^ _LOWEST


@triton.jit
def drawn_code(values, temperature, top_k, greedy, uniform, vocab, BLOCK: tl.constexpr):
    """Return the code drawn from float32 values [BLOCK], of which those from `vocab` on are -inf;
    the settings are those of a row."""
    at = tl.arange(0, BLOCK)
    if greedy:
        code = tl.argmax(values, 0, tie_break_left=True)
    else:
        # Divided as torch does: a quotient one bit off may break or make a tie.
        scaled = tl.div_rn(values, temperature)
        wanted = tl.where((top_k > 0) & (top_k < vocab), top_k, BLOCK)
        keys = _ordered(scaled)
        scaled = tl.where(keys >= _threshold(keys, wanted, BLOCK), scaled, float("-inf"))
        weights = tl.exp(scaled - tl.max(scaled, 0))
        heights = tl.cumsum(weights, 0)
        # Sums of a parallel scan may fall by a bit from one entry to the next. So the total
        # height is the largest one, and entries of weight 0 are excluded explicitly.
        drawn = uniform * tl.max(heights, 0)
        code = tl.min(tl.where((heights > drawn) & (weights > 0), at, BLOCK), 0)
        last = tl.max(tl.where(weights > 0, at, 0), 0)
        code = tl.where(code < BLOCK, code, last)
    # NaN compares with nothing: the result may be anything, but it must be a code.
    return tl.minimum(code, vocab - 1)


@triton.jit
def _sample(
    logits,
    temperature,
    top_k,
    greedy,
    uniform,
    codes,
    vocab,
    row_stride,
    temperature_stride,
    k_stride,
    greedy_stride,
    uniform_stride,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    values = tl.load(logits + row * row_stride + at, mask=at < vocab, other=float("-inf"))
    code = drawn_code(
        values.to(tl.float32),
        tl.load(temperature + row * temperature_stride),
        tl.load(top_k + row * k_stride).to(tl.int32),
        tl.load(greedy + row * greedy_stride) != 0,
        tl.load(uniform + row * uniform_stride),
        vocab,
        BLOCK,
    )
    tl.store(codes + row, code.to(tl.int64))
