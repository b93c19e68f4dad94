"""How a code is drawn from logits: per-row settings, no random state.

The order of steps is upstream's. Talker: repetition penalty, end of speech excluded at first, ids
that are no codes removed; then, as for the predictor, temperature, top-k, top-p and a draw, or the
best code where temperature is 0. A draw inverts the cumulative distribution at one number per code:
that needs one hash and one sum, where Gumbel noise would need a hash and two logarithms for every
entry of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from realtime_tts.kernels.first_codes import (
    CodeRules,
    allowed,
    finite_rows,
    no_codes,
    penalised,
)
from realtime_tts.kernels.uniform import seed_key, uniforms
from realtime_tts.model.config import ModelConfig
from realtime_tts.sampling import PredictorSampling, Sampling

_NEVER = float("-inf")
_COLDEST = 1e-6
"""Below this temperature a row is greedy: it draws the best code anyway, until logits divided by
the temperature become infinite."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Temperature, top-k and top-p of a batch of rows.

    temperature, top_p [B, 1] (greedy rows: temperature 1), last_k, unlimited [B, 1]: the index of
    the last code kept by top-k, and whether there is no such limit; greedy [B]. The flags are known
    on the host, so that steps which no row needs are skipped.
    """

    temperature: Tensor
    top_p: Tensor
    last_k: Tensor
    unlimited: Tensor
    greedy: Tensor
    any_sampled: bool
    any_greedy: bool
    any_top_p: bool
    widest_k: int
    """The largest top_k of the rows."""
    all_limited: bool
    """Whether every row has a top_k."""

    @classmethod
    def of(
        cls, rows: Sequence[Sampling | PredictorSampling], vocab: int, device: torch.device
    ) -> Limits:
        """Build the limits from the settings of each row, for a vocabulary of `vocab` codes."""
        greedy = [row.temperature < _COLDEST for row in rows]
        pairs = list(zip(rows, greedy, strict=True))
        temperatures = [1.0 if best else row.temperature for row, best in pairs]
        ks = [0 if best else min(row.top_k, vocab) for row, best in pairs]
        ps = [1.0 if best else row.top_p for row, best in pairs]

        def column(values: Sequence[float], dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device).unsqueeze(1)

        return cls(
            temperature=column(temperatures),
            top_p=column(ps),
            last_k=column([max(k - 1, 0) for k in ks], torch.long),
            unlimited=column([k == 0 for k in ks], torch.bool),
            greedy=torch.tensor(greedy, device=device),
            any_sampled=not all(greedy),
            any_greedy=any(greedy),
            any_top_p=any(p < 1 for p in ps),
            widest_k=max(ks),
            all_limited=all(k > 0 for k in ks),
        )


def draw(logits: Tensor, limits: Limits, uniform: Tensor) -> Tensor:
    """Draw one code per row, int64 [B], from float32 logits [B, V], with uniform [B, 1] in (0, 1).

    A row with NaN or Inf gets some code within the vocabulary, and no other row is affected.
    """
    if not limits.any_sampled:
        return logits.argmax(-1)
    scaled = logits / limits.temperature
    if limits.widest_k:
        scaled = _keep_top_k(scaled, limits)
    if limits.any_top_p:
        scaled = _keep_top_p(scaled, limits.top_p)
    heights = scaled.softmax(-1).cumsum(-1)
    # The first entry above a height below the last one: an entry of weight 0 is never above.
    codes = torch.searchsorted(heights, uniform * heights[:, -1:], right=True).squeeze(1)
    codes = codes.clamp_(max=logits.shape[1] - 1)  # NaN would point beyond the end
    return torch.where(limits.greedy, logits.argmax(-1), codes) if limits.any_greedy else codes


def _keep_top_k(scaled: Tensor, limits: Limits) -> Tensor:
    """Set entries of scaled [B, V] below the row's k-th largest to -inf, in place; ties stay."""
    best = scaled.topk(limits.widest_k, dim=-1).values
    lowest = best.gather(1, limits.last_k)
    if not limits.all_limited:
        lowest = lowest.masked_fill(limits.unlimited, _NEVER)
    return scaled.masked_fill_(scaled < lowest, _NEVER)


def _keep_top_p(scaled: Tensor, top_p: Tensor) -> Tensor:
    """Set the least likely entries of scaled [B, V], together at most 1 - top_p [B, 1], to -inf."""
    ordered, order = scaled.sort(dim=-1)
    dropped = ordered.softmax(-1).cumsum(-1) <= 1 - top_p
    dropped[:, -1].fill_(False)
    return scaled.masked_fill_(dropped.scatter(1, order, dropped), _NEVER)


def code_rules(config: ModelConfig) -> CodeRules:
    """Return which first codes there are."""
    talker, codes = config.talker, config.predictor.vocab
    return CodeRules(codes, talker.eos_id, config.generation.min_frames, talker.code_groups)


class SamplingState:
    """Settings, seeds and first-code history of every slot."""

    def __init__(self, config: ModelConfig, slots: int, device: torch.device) -> None:
        vocab = config.talker.vocab
        self._device, self._rules = device, code_rules(config)
        self._vocab, self._codes = vocab, config.predictor.vocab
        self._no_code = no_codes(vocab, self._rules, device)
        self._codebooks = torch.arange(config.talker.code_groups, device=device)
        self._seen = torch.zeros(slots, vocab, dtype=torch.bool, device=device)
        self._drawn = torch.zeros(slots, dtype=torch.long, device=device)
        self._settings = [Sampling()] * slots
        self._keys = [0] * slots
        self._rows: _Rows | None = None

    def begin(self, slot: int, sampling: Sampling, seed: int) -> None:
        """Begin a new utterance in this slot. The seed may be any integer."""
        self._settings[slot], self._keys[slot] = sampling, seed_key(seed)
        self._rows = None
        self.clear(slot)

    def resume(self, slot: int, first_codes: Tensor) -> None:
        """Continue after frames with these first codes [n], drawn elsewhere."""
        self._seen[slot, first_codes] = True
        self._drawn[slot] = len(first_codes)

    def clear(self, slot: int) -> None:
        """Clear the slot's history."""
        self._seen[slot] = False
        self._drawn[slot] = 0

    @torch.inference_mode()
    def first_codes(self, logits: Tensor, slots: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Draw the first codes [B] from float32 logits [B, vocab], and record them.

        Also returns which rows [B] had NaN or Inf. The codes may be end of speech.
        """
        rows = self._gather(slots)
        drawn = self._drawn[rows.slots]
        scores = logits
        if rows.any_penalty:
            scores = penalised(logits, self._seen[rows.slots], rows.penalty)
        scores = allowed(scores, self._no_code, self._rules, drawn)
        if rows.talker.any_sampled or rows.predictor.any_sampled:
            rows.uniform = uniforms(rows.keys, drawn, self._codebooks).split(1, 1)
        codes = draw(scores, rows.talker, rows.uniform[0])
        self._seen[rows.slots, codes] = True
        self._drawn[rows.slots] = drawn + 1
        return codes, ~finite_rows(logits)

    def other_codes(self, logits: Tensor, codebook: int, slots: Sequence[int]) -> Tensor:
        """Draw the codes [B] of one codebook (1..15) from logits [B, codebook size], for the frame
        whose first codes were drawn last for the same slots."""
        rows = self._gather(slots)
        return draw(logits, rows.predictor, rows.uniform[codebook])

    def _gather(self, slots: Sequence[int]) -> _Rows:
        """Return the settings of these rows, cached until the batch changes."""
        rows = self._rows
        if rows is not None and rows.order == tuple(slots):
            return rows
        chosen, device = [self._settings[slot] for slot in slots], self._device
        self._rows = _Rows(
            order=tuple(slots),
            slots=torch.tensor(slots, dtype=torch.long, device=device),
            keys=torch.tensor([self._keys[slot] for slot in slots], device=device),
            penalty=torch.tensor([[s.repetition_penalty] for s in chosen], device=device),
            any_penalty=any(s.repetition_penalty != 1 for s in chosen),
            talker=Limits.of(chosen, self._vocab, device),
            predictor=Limits.of([s.predictor for s in chosen], self._codes, device),
            uniform=torch.zeros(len(chosen), len(self._codebooks), device=device).split(1, 1),
        )
        return self._rows


@dataclass(slots=True)
class _Rows:
    """One batch: settings gathered from the slots, and the random numbers of the current frame."""

    order: tuple[int, ...]
    slots: Tensor
    keys: Tensor
    penalty: Tensor
    any_penalty: bool
    talker: Limits
    predictor: Limits
    uniform: Sequence[Tensor]
    """Random numbers [B, 1] for every codebook."""
