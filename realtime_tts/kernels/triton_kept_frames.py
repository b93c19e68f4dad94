"""The Triton kernel of `kept_frames.py`: a program per row."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.kept_frames import ENDED, FAILED, CodeTables, DrawnCodes, SlotFrames

_ENDED, _FAILED = tl.constexpr(ENDED), tl.constexpr(FAILED)


def keep_frame(
    slots: Tensor, drawn: DrawnCodes, tables: CodeTables, state: SlotFrames, outputs: Tensor
) -> None:
    """Run `kept_frames.keep_frame`."""
    rows, passes = drawn.others.shape
    hidden = tables.first.shape[1]
    given = (slots, *drawn, *tables[:2], *state, outputs)
    assert all(each.is_contiguous() for each in given), "a tensor with gaps"
    if rows:
        _keep_frame[(rows,)](
            *given,
            tables.eos,
            len(tables.others) // passes,
            len(state.positions) - 1,
            PLACES=state.codes.shape[1],
            PASSES=passes,
            NUMBERS=triton.next_power_of_2(passes + 1),
            HIDDEN=hidden,
            BLOCK=triton.next_power_of_2(hidden),
            num_warps=8,
        )


@triton.jit
def _keep_codes(
    first,
    others,
    flags,
    token,
    place,
    output,
    last,
    PASSES: tl.constexpr,
    NUMBERS: tl.constexpr,
):
    """Write a row's codes where the codec reads them, at most `last`, and where the host does."""
    number = tl.arange(0, NUMBERS)
    mask = number <= PASSES
    rest = tl.load(others + number - 1, mask=mask & (number > 0), other=0)
    codes = tl.where(number == 0, first, rest)
    tl.store(place + number, tl.minimum(codes, last), mask=mask)
    codes = codes.to(tl.int32) + tl.where(number == 0, flags, 0)
    tl.store(output + number, codes, mask=mask)
    tl.store(output + PASSES + 1, token)


@triton.jit
def _sum_embeddings(
    first,
    others,
    first_table,
    table,
    target,
    size,
    PASSES: tl.constexpr,
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    at = tl.arange(0, BLOCK)
    mask = at < HIDDEN
    total = tl.zeros([BLOCK], tl.float32)
    for j in tl.static_range(PASSES):
        code = tl.load(others + j) + j * size
        total += tl.load(table + code * HIDDEN + at, mask=mask, other=0.0).to(tl.float32)
    total = total.to(target.dtype.element_ty).to(tl.float32)  # rounded where torch does it
    total += tl.load(first_table + first * HIDDEN + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(target + at, total.to(target.dtype.element_ty), mask=mask)


@triton.jit
def _keep_frame(
    slots,
    firsts,
    others,
    failed,
    first_table,
    table,
    embeddings,
    ring,
    positions,
    drawn,
    tokens,
    outputs,
    eos,
    size,
    padding,
    PLACES: tl.constexpr,
    PASSES: tl.constexpr,
    NUMBERS: tl.constexpr,
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + row)
    first = tl.load(firsts + row)
    others += row * PASSES
    flags = tl.where(first == eos, _ENDED, 0)
    flags += tl.where(tl.load(failed + row) != 0, _FAILED, 0)
    number = (tl.load(drawn + slot) + PLACES - 1) % PLACES
    place = ring + (slot * PLACES + number) * (PASSES + 1)
    output = outputs + row * (PASSES + 2)
    token = tl.load(tokens + slot)
    _keep_codes(first, others, flags, token, place, output, size - 1, PASSES, NUMBERS)
    position = tl.load(positions + slot) + 1
    tl.store(positions + slot, tl.where(slot == padding, 0, position))
    target = embeddings + slot * HIDDEN
    _sum_embeddings(first, others, first_table, table, target, size, PASSES, HIDDEN, BLOCK)
