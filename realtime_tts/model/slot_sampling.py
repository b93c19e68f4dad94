"""Sampling whose settings, seeds and histories are on the device, by slot.

It draws the same codes as `sampling.SamplingState`. There the host looks at the settings of a batch
and skips unneeded steps; here it may not look, so all rows run one of two programs: the narrow one,
for top_k up to `NARROW_K` and no top_p, and the wide one for anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from realtime_tts.kernels import FrameDraws, sample
from realtime_tts.kernels.sampling import MOST_CODES
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.sampling import (
    Limits,
    allowed,
    draw,
    finite_rows,
    no_codes,
    penalised,
    seed_key,
    uniforms,
)
from realtime_tts.sampling import Sampling

NARROW_K = 64
"""The largest top_k of the narrow program: the checkpoints recommend 50."""

SETTINGS = 12
"""Number of int64 that describe how a slot draws: key, then for talker and predictor greedy, last_k
and unlimited; then five float32: temperature and top_p of both, and the repetition penalty."""

_INTEGERS = 7
_CPU = torch.device("cpu")


def is_wide(sampling: Sampling) -> bool:
    """Return whether a row needs the wide program."""
    both = sampling, sampling.predictor
    return any(s.temperature > 0 and (s.top_k > NARROW_K or s.top_p < 1) for s in both)


class SlotSampling:
    """Sampling state of `slots` slots and one for padding."""

    def __init__(self, config: ModelConfig, slots: int, device: torch.device) -> None:
        talker, codes = config.talker, config.predictor.vocab
        self._eos, self._vocab, self._codes = talker.eos_id, talker.vocab, codes
        self._min_frames = config.generation.min_frames
        self._no_code = no_codes(config, device)
        self._codebooks = torch.arange(talker.code_groups, device=device)
        # A server's turns have few different settings, and most have the checkpoint's own.
        self._numbers = lru_cache(maxsize=256)(self._make_numbers)
        self._true = torch.ones((), dtype=torch.bool, device=device)
        unused = self.settings([(Sampling(), 0)])
        self._settings = torch.tensor(unused * (slots + 1), device=device)
        self._seen = torch.zeros(slots + 1, talker.vocab, dtype=torch.bool, device=device)
        self.drawn = torch.zeros(slots + 1, dtype=torch.long, device=device)
        """Number of first codes drawn so far, by slot: the number of the next frame."""
        self.fused = device.type == "cuda" and talker.vocab <= MOST_CODES
        """Whether narrow draws are one kernel each; a CPU uses `sampling.draw`, bit for bit."""

    def settings(self, rows: Sequence[tuple[Sampling, int]]) -> list[tuple[int, ...]]:
        """Return SETTINGS int64 per (sampling, seed), for `begin`; float32 values as their bits."""
        return [(seed_key(seed), *self._numbers(sampling)) for sampling, seed in rows]

    def _make_numbers(self, sampling: Sampling) -> tuple[int, ...]:
        """Return all of a row's settings except the key."""
        talker = Limits.of([sampling], self._vocab, _CPU)
        predictor = Limits.of([sampling.predictor], self._codes, _CPU)
        integers: list[Tensor] = []
        for limits in (talker, predictor):
            integers += [limits.greedy, limits.last_k[0], limits.unlimited[0]]
        floats = [talker.temperature, talker.top_p, predictor.temperature, predictor.top_p]
        floats.append(torch.tensor([[sampling.repetition_penalty]]))
        bits = torch.cat(floats, 1).view(torch.int32)[0]
        return *(int(number) for number in integers), *bits.tolist()

    def begin(self, slots: Tensor, settings: Tensor) -> None:
        """Begin new utterances in these slots [n], with settings [n, SETTINGS]."""
        self._settings.index_copy_(0, slots, settings)
        self._seen.index_fill_(0, slots, 0)
        self.drawn.index_fill_(0, slots, 0)

    def resume(self, slot: int, first_codes: Tensor) -> None:
        """Continue after frames with these first codes [n], like `SamplingState.resume`."""
        self._seen[slot, first_codes] = True
        self.drawn[slot] = len(first_codes)

    def rows(self, slots: Tensor, wide: bool) -> DrawnRows:
        """Return a batch about to make a frame: slots [B]."""
        return DrawnRows(self, slots, wide)


@dataclass(frozen=True, slots=True)
class _Limits:
    """Settings of a batch: for `sampling.draw`, and where the kernel draws, temperature, top_k and
    greedy [B] in its form."""

    plain: Limits
    fused: tuple[Tensor, Tensor, Tensor] | None = None


class DrawnRows:
    """One frame of some rows: `first_codes` once, then `other_codes` for codebooks 1..15."""

    def __init__(self, state: SlotSampling, slots: Tensor, wide: bool) -> None:
        self._state, self._slots = state, slots
        settings = state._settings.index_select(0, slots)
        key, *limits = settings[:, :_INTEGERS].unbind(1)
        floats = settings[:, _INTEGERS:].int().view(torch.float32).split(1, 1)
        self._fused = state.fused and not wide
        self._talker = self._limits(limits[:3], floats[:2], state._vocab, wide)
        self._predictor = self._limits(limits[3:], floats[2:4], state._codes, wide)
        self._penalty = floats[4]
        self.frames = state.drawn.index_select(0, slots)
        """Number of the current frame [B]."""
        self._numbers = uniforms(key, self.frames, state._codebooks)
        self._uniforms = self._numbers.split(1, 1)

    def first_codes(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Draw the first codes [B] from logits [B, vocab], and record them, like
        `SamplingState.first_codes`. Also returns which rows [B] had NaN or Inf."""
        state, slots = self._state, self._slots
        scores = penalised(logits, state._seen.index_select(0, slots), self._penalty)
        scores = allowed(scores, state._no_code, state._eos, self.frames < state._min_frames)
        codes = self._draw(scores, self._talker, 0)
        state._seen.index_put_((slots, codes), state._true)
        state.drawn.index_copy_(0, slots, self.frames + 1)
        return codes, ~finite_rows(logits)

    def other_codes(self, logits: Tensor, codebook: int) -> Tensor:
        """Draw codes [B] of one codebook from logits [B, codebook size]."""
        return self._draw(logits, self._predictor, codebook)

    @property
    def other_draws(self) -> FrameDraws | None:
        """How `other_codes` draws, where a kernel can do it; None for the wide program."""
        if self._predictor.fused is None:
            return None
        return FrameDraws(*self._predictor.fused, self._numbers[:, 1:])

    def _draw(self, logits: Tensor, limits: _Limits, codebook: int) -> Tensor:
        uniform = self._uniforms[codebook]
        if limits.fused is None:
            return draw(logits.float(), limits.plain, uniform)
        return sample(logits, *limits.fused, uniform.squeeze(1))

    def _limits(
        self, integers: Sequence[Tensor], floats: Sequence[Tensor], vocab: int, wide: bool
    ) -> _Limits:
        greedy, last_k, unlimited = integers
        plain = Limits(
            temperature=floats[0],
            top_p=floats[1],
            last_k=last_k.unsqueeze(1),
            unlimited=unlimited.bool().unsqueeze(1),
            greedy=greedy.bool(),
            any_sampled=True,
            any_greedy=True,
            any_top_p=wide,
            widest_k=vocab if wide else min(NARROW_K, vocab),
            all_limited=False,
        )
        if not self._fused:
            return _Limits(plain)
        top_k = (last_k + 1).masked_fill(plain.unlimited.squeeze(1), 0).int()
        temperature = floats[0].squeeze(1).contiguous()
        return _Limits(plain, (temperature, top_k, plain.greedy.contiguous()))
