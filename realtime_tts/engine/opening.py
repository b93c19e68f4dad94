"""What an utterance of `CapturedEngine` begins with: the positions before its first frame.

All but the last of them go into the store; the last one is made like that of any frame, from an
embedding sum (codec bos, or the last frame of a reference in context) and a text id. So a row
whose opening is stored eats its text like every other, and its first frame is nothing special.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
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
    """A row that begins. Behind the prefix's positions `stored` more go into the store: text `ids`
    or, once it has its pages, `vectors` [stored, H]; `last` [H]: the embedding sum it begins with,
    if that is not codec bos."""

    id: str
    row: Row
    layout: Layout
    prefix_length: int
    stored: int
    ids: Sequence[int] = ()
    vectors: Tensor | None = None
    last: Tensor | None = None

    @classmethod
    def of(cls, id: str, row: Row, layout: Layout, prompts: PromptBuilder) -> Opening:
        """Changes nothing. Raises RequestError."""
        if not row.ids:
            raise RequestError("there is no text to speak")
        checked(row.spec.sampling)
        full = layout is Layout.FULL_TEXT
        length, codes = prompts.prefix_length(row.prompt_spec), _codes(row.prompt_spec)
        if codes is None:
            ids = [*row.ids, prompts.end_of_text] if full else []
            return cls(id, row, layout, length, len(ids), ids)
        stored = len(codes)
        if full:
            stored += len(_transcript(row.prompt_spec)) + len(row.ids) + 1
        return cls(id, row, layout, length, stored)

    @property
    def prefix(self) -> PromptSpec:
        return self.row.prompt_spec

    @property
    def positions(self) -> int:
        """The positions of the whole prompt, that of frame 0 included."""
        return self.prefix_length + self.stored + 1

    @property
    def start(self) -> Start:
        row = self.row
        return Start(row.slot, row.prompt, row.spec.sampling, row.spec.seed, self.last)

    def begin(self, slot: int, prompts: PromptBuilder) -> None:
        """The row has pages and a slot: it goes on behind what will be stored."""
        row = self.row
        if _codes(self.prefix) is not None:
            prompt = prompts.prompt(self.prefix, row.ids, self.layout.value, finished=row.finished)
            self.vectors, self.last = prompt.inputs[self.prefix_length : -1], prompt.last
            assert len(self.vectors) == self.stored, "a prompt of another length than was said"
            row.ids[:0] = _transcript(self.prefix)
            row.fed, row.eos_fed = min(self.stored, len(row.ids)), self.stored > len(row.ids)
        elif self.layout is Layout.FULL_TEXT:
            row.fed, row.eos_fed = len(row.ids), True
        row.slot, row.prompt = slot, self.positions - 1


def _codes(prefix: PromptSpec) -> Tensor | None:
    return None if prefix.reference is None else prefix.reference.codes


def _transcript(prefix: PromptSpec) -> tuple[int, ...]:
    return () if prefix.reference is None else prefix.reference.text_ids


class PrefixCache:
    """Keys and values of prompt prefixes: every utterance of a voice begins with the same ones.

    Those used last are kept, up to `positions` in all: [layers, 2, kv_heads, n, D] by key.
    """

    def __init__(self, positions: int) -> None:
        self._positions, self._used = positions, 0
        self._kept: OrderedDict[Hashable, Tensor] = OrderedDict()

    def get(self, key: Hashable) -> Tensor | None:
        """What was kept for `key`, if anything is; it counts as used now."""
        kv = self._kept.get(key)
        if kv is not None:
            self._kept.move_to_end(key)
        return kv

    def put(self, key: Hashable, kv: Tensor) -> None:
        """Keep `kv`, and as many of the others as there is room for; one that is too long for all
        the room is not kept."""
        length = kv.shape[3]
        if key in self._kept or length > self._positions:
            return
        self._kept[key] = kv
        self._used += length
        while self._used > self._positions:
            _, oldest = self._kept.popitem(last=False)
            self._used -= oldest.shape[3]
