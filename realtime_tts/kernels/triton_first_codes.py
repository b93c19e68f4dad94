"""The Triton kernel of `first_codes.py`: a program per row, which it holds in registers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.first_codes import SETTINGS, CodeRules, SlotDraws
from realtime_tts.kernels.sampling import MOST_CODES, FrameDraws
from realtime_tts.kernels.triton_sampling import drawn_code
from realtime_tts.kernels.uniform import FIRST, GAMMA, SECOND

_SETTINGS = tl.constexpr(SETTINGS)
_GAMMA, _FIRST, _SECOND = tl.constexpr(GAMMA), tl.constexpr(FIRST), tl.constexpr(SECOND)


def first_codes(
    logits: Tensor, slots: Tensor, state: SlotDraws, rules: CodeRules
) -> tuple[Tensor, Tensor, FrameDraws]:
    """Run `first_codes.first_codes`: logits [B, V] float -> [B] int64."""
    rows, vocab = logits.shape
    assert vocab <= MOST_CODES, f"{vocab} codes; a row of at most {MOST_CODES} fits"
    assert logits.is_contiguous() and slots.is_contiguous()
    assert all(each.is_contiguous() for each in state) and vocab == state.seen.shape[1]
    codes, failed = torch.empty_like(slots), logits.new_empty(rows, dtype=torch.bool)
    numbers = triton.next_power_of_2(rules.codebooks)
    draws = FrameDraws(
        logits.new_empty(rows, dtype=torch.float32),
        logits.new_empty(rows, dtype=torch.int32),
        logits.new_empty(rows, dtype=torch.bool),
        logits.new_empty(rows, numbers, dtype=torch.float32),
    )
    if rows:
        block = triton.next_power_of_2(vocab)
        _first_codes[(rows,)](
            logits,
            slots,
            *state,
            codes,
            failed,
            *draws,
            vocab,
            rules.codes,
            rules.eos,
            rules.min_frames,
            NUMBERS=numbers,
            BLOCK=block,
            num_warps=max(1, min(8, block // 512)),
        )
    return codes, failed, draws._replace(uniform=draws.uniform[:, 1 : rules.codebooks])


@triton.jit
def _mix(words):
    words = (words ^ (words >> 30 & 0x3FFFFFFFF)) * _FIRST
    words = (words ^ (words >> 27 & 0x1FFFFFFFFF)) * _SECOND
    return words ^ (words >> 31 & 0x1FFFFFFFF)


@triton.jit
def _uniforms(key, frame, NUMBERS: tl.constexpr):
    """Return float32 [NUMBERS] in (0, 1), as `uniform.uniforms` makes them."""
    books = tl.arange(0, NUMBERS).to(tl.int64)
    words = _mix(_mix(key + (frame + 1) * _GAMMA) + (books + 1) * _GAMMA)
    return ((words >> 41 & 0x7FFFFF).to(tl.float32) + 0.5) * (1.0 / (1 << 23))


@triton.jit
def _bits(place):
    """Return the float32 whose bits an int64 has."""
    return tl.load(place).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _scores(values, seen, penalty, frame, codes, eos, min_frames, BLOCK: tl.constexpr):
    """Return logits [BLOCK] less likely where `seen`, and without what is no code now."""
    at = tl.arange(0, BLOCK)
    lower = tl.where(values > 0, tl.div_rn(values, penalty), values * penalty)
    scores = tl.where(seen, lower, values)
    none = tl.where(at == eos, frame < min_frames, at >= codes)
    return tl.where(none, float("-inf"), scores)


@triton.jit
def _first_codes(
    logits,
    slots,
    settings,
    seen,
    drawn,
    found,
    failed,
    temperature,
    top_k,
    greedy,
    uniform,
    vocab,
    codes,
    eos,
    min_frames,
    NUMBERS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + row)
    own, seen_here = settings + slot * _SETTINGS, seen + slot * vocab
    frame = tl.load(drawn + slot)
    numbers = _uniforms(tl.load(own), frame, NUMBERS)
    books = tl.arange(0, NUMBERS)
    tl.store(uniform + row * NUMBERS + books, numbers)
    at = tl.arange(0, BLOCK)
    mask = at < vocab
    values = tl.load(logits + row * vocab + at, mask=mask, other=0.0).to(tl.float32)
    # The sum of a row with NaN or Inf is none of the numbers.
    tl.store(failed + row, (tl.abs(tl.sum(values, 0)) < float("inf")) == 0)
    before = tl.load(seen_here + at, mask=mask, other=0) != 0
    scores = _scores(values, before, _bits(own + 9), frame, codes, eos, min_frames, BLOCK)
    code = drawn_code(
        scores,
        _bits(own + 5),
        tl.load(own + 2).to(tl.int32),
        tl.load(own + 1) != 0,
        tl.sum(tl.where(books == 0, numbers, 0.0), 0),
        vocab,
        BLOCK,
    )
    tl.store(found + row, code.to(tl.int64))
    tl.store(seen_here + code, 1)
    tl.store(drawn + slot, frame + 1)
    tl.store(temperature + row, _bits(own + 7))
    tl.store(top_k + row, tl.load(own + 4).to(tl.int32))
    tl.store(greedy + row, tl.load(own + 3) != 0)
