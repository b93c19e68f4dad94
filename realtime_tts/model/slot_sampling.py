"""Sampling whose settings, seeds and histories are on the device, by slot.

It draws the same codes as `sampling.SamplingState`. There the host looks at the settings of a batch
and skips unneeded steps; here it may not look, so all rows run one of two programs: the narrow one,
for top_k up to `NARROW_K` and no top_p, and the wide one for anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from realtime_tts.kernels import FrameDraws, first_codes, sample
from realtime_tts.kernels.first_codes import (
    SlotDraws,
    finite_rows,
    first_scores,
    record,
    row_draws,
)
from realtime_tts.kernels.sampling import MOST_CODES
from realtime_tts.kernels.uniform import seed_key
from realtime_tts.model.code_predictor import Choices
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.sampling import Limits, code_rules, draw
from realtime_tts.sampling import Sampling

NARROW_K = 64
"""The largest top_k of the narrow program: the checkpoints recommend 50."""

_CPU = torch.device("cpu")


def is_wide(sampling: Sampling) -> bool:
    """Return whether a row needs the wide program."""
    both = sampling, sampling.predictor
    return any(s.temperature > 0 and (s.top_k > NARROW_K or s.top_p < 1) for s in both)


class SlotSampling:
    """Sampling state of `slots` slots and one for padding."""

    def __init__(self, config: ModelConfig, slots: int, device: torch.device) -> None:
        self._vocab, self._codes = config.talker.vocab, config.predictor.vocab
        # A server's turns have few different settings, and most have the checkpoint's own.
        self._numbers = lru_cache(maxsize=256)(self._make_numbers)
        self.rules = code_rules(config)
        self.state = SlotDraws(
            torch.tensor(self.settings([(Sampling(), 0)]) * (slots + 1), device=device),
            torch.zeros(slots + 1, self._vocab, dtype=torch.bool, device=device),
            torch.zeros(slots + 1, dtype=torch.long, device=device),
        )
        self.fused = device.type == "cuda" and self._vocab <= MOST_CODES
        """Whether narrow draws are one kernel; a CPU uses `sampling.draw`, bit for bit."""

    def settings(self, rows: Sequence[tuple[Sampling, int]]) -> list[tuple[int, ...]]:
        """Return SETTINGS int64 per (sampling, seed), for `begin`; float32 values as their bits."""
        return [(seed_key(seed), *self._numbers(sampling)) for sampling, seed in rows]

    def _make_numbers(self, sampling: Sampling) -> tuple[int, ...]:
        """Return all of a row's settings except the key."""
        talker = Limits.of([sampling], self._vocab, _CPU)
        predictor = Limits.of([sampling.predictor], self._codes, _CPU)
        integers: list[int] = []
        for limits in (talker, predictor):
            integers += [int(limits.greedy), limits.widest_k]
        floats = [talker.temperature, talker.top_p, predictor.temperature, predictor.top_p]
        floats.append(torch.tensor([[sampling.repetition_penalty]]))
        return *integers, *torch.cat(floats, 1).view(torch.int32)[0].tolist()

    def begin(self, slots: Tensor, settings: Tensor) -> None:
        """Begin new utterances in these slots [n], with settings [n, SETTINGS]."""
        state = self.state
        state.settings.index_copy_(0, slots, settings)
        state.seen.index_fill_(0, slots, 0)
        state.drawn.index_fill_(0, slots, 0)

    def resume(self, slot: int, first_codes: Tensor) -> None:
        """Continue after frames with these first codes [n], like `SamplingState.resume`."""
        self.state.seen[slot, first_codes] = True
        self.state.drawn[slot] = len(first_codes)

    def first_codes(
        self, logits: Tensor, slots: Tensor, wide: bool
    ) -> tuple[Tensor, Tensor, Choices]:
        """Draw the first codes [B] of `slots` [B] from logits [B, vocab], and record them, like
        `SamplingState.first_codes`. Also returns which rows [B] had NaN or Inf, and how the
        frame's other codes are chosen. `wide`: see `is_wide`.
        """
        if wide or not self.fused:
            return self._plain_codes(logits, slots, wide)
        codes, failed, draws = first_codes(logits, slots, self.state, self.rules)

        def other_codes(logits: Tensor, codebook: int) -> Tensor:
            return sample(logits, *draws[:3], draws.uniform[:, codebook - 1])

        return codes, failed, Choices(other_codes, draws)

    def _plain_codes(
        self, logits: Tensor, slots: Tensor, wide: bool
    ) -> tuple[Tensor, Tensor, Choices]:
        state, rules = self.state, self.rules
        rows = row_draws(slots, state, rules.codebooks)
        talker = _limits(rows.talker, rows.top_p[0], self._vocab, wide)
        predictor = _limits(rows.predictor, rows.top_p[1], self._codes, wide)
        scores = first_scores(logits, slots, rows, state, rules)
        codes = draw(scores, talker, rows.talker.uniform)
        record(codes, slots, rows, state)
        uniform = rows.predictor.uniform.split(1, 1)

        def other_codes(logits: Tensor, codebook: int) -> Tensor:
            return draw(logits.float(), predictor, uniform[codebook - 1])

        return codes, ~finite_rows(logits), Choices(other_codes)


def _limits(draws: FrameDraws, top_p: Tensor, vocab: int, wide: bool) -> Limits:
    top_k = draws.top_k.long().unsqueeze(1)
    return Limits(
        temperature=draws.temperature.unsqueeze(1),
        top_p=top_p.unsqueeze(1),
        last_k=(top_k - 1).clamp(min=0),
        unlimited=top_k == 0,
        greedy=draws.greedy,
        any_sampled=True,
        any_greedy=True,
        any_top_p=wide,
        widest_k=vocab if wide else min(NARROW_K, vocab),
        all_limited=False,
    )
