"""Draws the first code of each row's frame, and says how its other codes are drawn.

What rows draw by, and what they have drawn, is on the device, by slot. The order of steps, and the
numbers that draws take, are those of `model/sampling.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel
from realtime_tts.kernels.sampling import FrameDraws, sample
from realtime_tts.kernels.uniform import uniforms

SETTINGS = 10
"""Number of int64 that describe how a slot draws: its key, then for talker and predictor whether it
is greedy, and its top_k (0: no limit); then the bits of five float32: temperature and top_p of
both, and the repetition penalty."""

_INTEGERS = 5


class SlotDraws(NamedTuple):
    """How slots draw, and what they have drawn."""

    settings: Tensor
    """[slots, SETTINGS] int64."""
    seen: Tensor
    """[slots, V] bool: the first codes of the utterance so far."""
    drawn: Tensor
    """[slots] int64: the number of first codes drawn so far, which is the next frame's number."""


class CodeRules(NamedTuple):
    """Which first codes there are."""

    codes: int
    """Ids from here on are no codes,"""
    eos: int
    """except the end of speech,"""
    min_frames: int
    """which is no code either before this frame."""
    codebooks: int
    """Codes of a frame."""


class RowDraws(NamedTuple):
    """How B rows draw a frame."""

    frames: Tensor
    """[B] int64: its number."""
    talker: FrameDraws
    predictor: FrameDraws
    top_p: tuple[Tensor, Tensor]
    """[B] float32 each, of talker and predictor."""
    penalty: Tensor
    """[B, 1] float32, for first codes that were drawn before."""


def row_draws(slots: Tensor, state: SlotDraws, codebooks: int) -> RowDraws:
    """Return how the rows of `slots` [B] int64 draw their next frame."""
    settings = state.settings.index_select(0, slots)
    key, greedy, top_k, other_greedy, other_top_k = settings[:, :_INTEGERS].unbind(1)
    floats = settings[:, _INTEGERS:].int().view(torch.float32).t().contiguous()
    temperature, top_p, other_temperature, other_top_p, penalty = floats.unbind(0)
    frames = state.drawn.index_select(0, slots)
    numbers = uniforms(key, frames, torch.arange(codebooks, device=slots.device))
    return RowDraws(
        frames,
        FrameDraws(temperature, top_k.int(), greedy.bool(), numbers[:, :1]),
        FrameDraws(other_temperature, other_top_k.int(), other_greedy.bool(), numbers[:, 1:]),
        (top_p, other_top_p),
        penalty.unsqueeze(1),
    )


def first_scores(
    logits: Tensor, slots: Tensor, rows: RowDraws, state: SlotDraws, rules: CodeRules
) -> Tensor:
    """Return what first codes are drawn from, float32 [B, V], given logits [B, V] float."""
    seen = state.seen.index_select(0, slots)
    scores = penalised(logits.float(), seen, rows.penalty)
    return allowed(scores, no_codes(logits.shape[1], rules, slots.device), rules, rows.frames)


def record(codes: Tensor, slots: Tensor, rows: RowDraws, state: SlotDraws) -> None:
    """Record that first codes [B] were drawn in `slots` [B]."""
    state.seen.index_put_((slots, codes), state.seen.new_ones(()))
    state.drawn.index_copy_(0, slots, rows.frames + 1)


@Kernel
def first_codes(
    logits: Tensor, slots: Tensor, state: SlotDraws, rules: CodeRules
) -> tuple[Tensor, Tensor, FrameDraws]:
    """Draw the first codes [B] int64 of `slots` [B] int64 from logits [B, V] float, and record
    them. Also returns which rows [B] bool had NaN or Inf, and how their other codes are drawn.

    There is no top_p, as in `sample`. A slot may be named again if nobody reads what it draws.
    """
    rows = row_draws(slots, state, rules.codebooks)
    scores = first_scores(logits, slots, rows, state, rules)
    codes = sample.plain(scores, *rows.talker[:3], rows.talker.uniform[:, 0])
    record(codes, slots, rows, state)
    return codes, ~finite_rows(logits), rows.predictor


def no_codes(vocab: int, rules: CodeRules, device: torch.device) -> Tensor:
    """Return which ids are neither codes nor end of speech, bool [vocab]."""
    ids = torch.arange(vocab, device=device)
    return (ids >= rules.codes) & (ids != rules.eos)


def penalised(logits: Tensor, seen: Tensor, penalty: Tensor) -> Tensor:
    """Return logits [B, V] in which the codes `seen` [B, V] are less likely by `penalty` [B, 1]."""
    lower = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, lower, logits)


def allowed(logits: Tensor, no_code: Tensor, rules: CodeRules, frames: Tensor) -> Tensor:
    """Return logits [B, V] without non-codes [V], and without end of speech where it comes too
    early in frames [B]."""
    never = float("-inf")
    scores = logits.masked_fill(no_code, never)
    scores[:, rules.eos].masked_fill_(frames < rules.min_frames, never)
    return scores


def finite_rows(logits: Tensor) -> Tensor:
    """Return which rows [B] of logits [B, V] contain neither NaN nor Inf."""
    return logits.sum(-1).isfinite()
