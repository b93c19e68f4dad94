"""Lays out a piece's prefill, and the text vectors of its frames, as a `Way` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from realtime_tts.model import PromptBuilder, PromptSpec, SpeechModel
from tools.seams.ways import Context, Way


@dataclass(slots=True)
class Piece:
    """A piece of a turn: its text ids, and the frames [16] made so far. `over`: there will be no
    more; `ended`: the model ended it itself; `heard`: frames without silent ones at the end."""

    ids: list[int]
    codes: list[Tensor] = field(default_factory=list)
    over: bool = False
    ended: bool = False
    heard: int = 0


@dataclass(frozen=True, slots=True)
class Opening:
    """How a piece begins: `inputs` [L, H] of the prefill, and `text` ids for the next frames, which
    padding follows."""

    inputs: Tensor
    text: list[int]


class Layout:
    """Lays out pieces for one checkpoint."""

    def __init__(self, model: SpeechModel, prompts: PromptBuilder) -> None:
        self._prompts = prompts
        self.pad, self.end = model.config.text.tts_pad, model.config.text.tts_eos

    def opening(
        self, spec: PromptSpec, ids: Sequence[int], earlier: Sequence[Piece], way: Way
    ) -> Opening:
        """Return how a piece with text `ids` begins after the `earlier` pieces in its prefill."""
        shown = [(p.ids, p.codes[: p.heard if way.trim else None]) for p in earlier]
        spoken = self._spoken([frame for _, codes in shown for frame in codes])
        prefix, old = self._prompts.prefix(spec), [id for text, _ in shown for id in text]
        end = [self.end] if way.end else []
        if way.full_text:
            text = self._prompts.text([*old, *ids, *end]) + self._prompts.pad
            return Opening(torch.cat((prefix, text, spoken + self._prompts.tts_pad)), [])
        row = [*old, *ids, *end]
        if way.context in (Context.AS_FED, Context.NOT_CLOSED):
            closed = end if way.context is Context.AS_FED else []
            row = [id for text, codes in shown for id in self._fed(text, closed, len(codes))]
            row += [*ids, *end]
        row += [self.pad] * (len(spoken) - len(row))
        return Opening(
            torch.cat((prefix, self._prompts.text(row[: len(spoken)]) + spoken)), row[len(spoken) :]
        )

    def _fed(self, text: Sequence[int], closed: Sequence[int], frames: int) -> list[int]:
        """Return the ids that a piece's frames were fed, one for each frame."""
        return [*text, *closed, *[self.pad] * frames][:frames]

    def _spoken(self, codes: Sequence[Tensor]) -> Tensor:
        """Return the embeddings of codec bos and n frames, [n + 1, H]."""
        bos = self._prompts.bos
        return torch.cat((bos, self._prompts.frames(torch.stack(list(codes))))) if codes else bos
