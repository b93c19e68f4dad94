"""The beginning of an utterance of `CapturedEngine`: the positions before its first frame.

A prompt that is known as a whole is computed as a whole, and its first frame is drawn from the
talker's output at its end. In the streaming layout all positions except the last are the prefix,
which is cached; the last one is computed like any frame's, from an embedding sum (codec bos) and a
text id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from realtime_tts.engine.model_engine import Row
from realtime_tts.errors import RequestError
from realtime_tts.model import PromptBuilder, PromptSpec
from realtime_tts.model.frame_step import Start
from realtime_tts.sampling import checked
from tts_scheduler import Layout


@dataclass(slots=True)
class Opening:
    """A row that begins. After the prefix come `length` more positions: of text `ids` or, once it
    has its pages, `vectors` [length, H]; with neither, the one position of frame 0."""

    id: str
    row: Row
    layout: Layout
    prefix_length: int
    length: int
    ids: Sequence[int] = ()
    vectors: Tensor | None = None

    @classmethod
    def of(cls, id: str, row: Row, layout: Layout, prompts: PromptBuilder) -> Opening:
        """Return the opening of a row. Changes nothing. Raises RequestError."""
        if not row.ids:
            raise RequestError("there is no text to speak")
        checked(row.spec.sampling)
        full = layout is Layout.FULL_TEXT
        length, codes = prompts.prefix_length(row.prompt_spec), _codes(row.prompt_spec)
        if codes is None:
            ids = [*row.ids, *prompts.behind_text] if full else []
            return cls(id, row, layout, length, max(1, len(ids)), ids)
        shown = len(codes) + 1
        if full:
            shown += len(_transcript(row.prompt_spec)) + len(row.ids) + 1
        return cls(id, row, layout, length, shown)

    @property
    def prefix(self) -> PromptSpec:
        return self.row.prompt_spec

    @property
    def positions(self) -> int:
        """Number of positions of the whole prompt, that of frame 0 included."""
        return self.prefix_length + self.length

    @property
    def whole(self) -> bool:
        """Whether the position of frame 0 is computed with the rest of the prompt."""
        return bool(self.ids) or self.vectors is not None

    @property
    def talks(self) -> bool:
        """Whether its next frame needs a talker step: the prompt does not include the position of
        frame 0, or frames of another engine follow it."""
        return not self.whole or self.row.frames > 0

    def start(self, prefix: range) -> Start:
        """Return how its slot begins; `prefix` as in `Start`."""
        row = self.row
        return Start(row.slot, row.prompt, row.spec.sampling, row.spec.seed, prefix)

    def begin(self, prompts: PromptBuilder) -> None:
        """Move the row to the position after its prompt, once it has a slot and pages."""
        row = self.row
        if _codes(self.prefix) is not None:
            prompt = prompts.prompt(self.prefix, row.ids, self.layout.value, finished=row.finished)
            self.vectors = prompt.inputs[self.prefix_length :]
            assert len(self.vectors) == self.length, "a prompt of another length than was said"
            row.ids[:0] = _transcript(self.prefix)
            row.text_from = len(_transcript(self.prefix))
            row.fed, row.eos_fed = min(self.length, len(row.ids)), self.length > len(row.ids)
        elif self.layout is Layout.FULL_TEXT:
            row.fed, row.eos_fed = len(row.ids), True
        row.prompt = self.positions - 1
        row.text_first = prompts.text_position(self.prefix)


def _codes(prefix: PromptSpec) -> Tensor | None:
    return None if prefix.reference is None else prefix.reference.codes


def _transcript(prefix: PromptSpec) -> tuple[int, ...]:
    return () if prefix.reference is None else prefix.reference.text_ids
