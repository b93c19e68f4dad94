"""A frame for a batch of slots without a question to the host: what a CUDA graph captures.

All that a row carries from frame to frame lies on the device at a fixed address, by slot: the sum
of its last frame's embeddings, its next position, its sampling state, and a ring of codes that the
codec has not read yet. Slot number `slots` is for the rows that pad a batch.

Every utterance begins as a row that has made a frame already: its prompt but for the last position
is in the store, and the codec vector of that position is in place of the embedding sum. So its
first frame is an ordinary row of an ordinary batch, in both text layouts and behind a reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from realtime_tts.model.fused import FusedPredictor
from realtime_tts.model.paged_cache import PagedKVCache
from realtime_tts.model.prompt_rows import PromptRows
from realtime_tts.model.slot_sampling import DrawnRows, SlotSampling
from realtime_tts.model.slot_store import SlotStore
from realtime_tts.model.speech_model import Frame, SpeechModel
from realtime_tts.sampling import Sampling

RING = 32
"""Frames of a slot that may wait for the codec."""

_ENDED, _FAILED = 1 << 24, 1 << 25


@dataclass(frozen=True, slots=True)
class Start:
    """An utterance about to begin in `slot`, whose first `position` positions are stored.
    `embedding` [H]: what it begins with, if not with what all begin with."""

    slot: int
    position: int
    sampling: Sampling
    seed: int
    embedding: Tensor | None = None


class FrameStep:
    """State of `slots` slots, and the step that moves a batch of them on by one frame.

    `inputs` [2 * slots] int64 is what a step of B rows reads: B slots, then B text ids; `outputs`
    [slots] int32 is what it leaves (`decoded`).
    """

    def __init__(self, model: SpeechModel, slots: int, store: SlotStore, embedding: Tensor) -> None:
        """`embedding` [1, H]: what a new utterance begins with."""
        talker, device = model.talker, model.talker.device
        assert talker.config.vocab < _ENDED, "codes and flags share a number"
        self.model, self.slots, self.store = model, slots, store
        self.sampling = SlotSampling(model.config, slots, device)
        self.embeddings = embedding.repeat(slots + 1, 1)
        self.positions = torch.zeros(slots + 1, dtype=torch.long, device=device)
        groups = talker.config.code_groups
        self.codes = torch.zeros(slots + 1, RING, groups, dtype=torch.long, device=device)
        """Frame number f of a slot is in place f % RING."""
        self.inputs = torch.zeros(2 * slots, dtype=torch.long, device=device)
        self.outputs = torch.zeros(slots, dtype=torch.int32, device=device)
        self._first, self._last_code = embedding, model.config.predictor.vocab - 1
        self.persistent = False
        """Whether the code predictor has a kernel that makes the whole frame of few rows."""
        if isinstance(store, PagedKVCache):
            fused = FusedPredictor(model.predictor, slots, device)
            self._predict, self.persistent = fused.codes, fused.persistent
        else:
            self._predict = model.predictor.codes

    def begin(self, starts: Sequence[Start]) -> Tensor:
        """New utterances; what their slots held before is forgotten. Returns the slots [n]."""
        given = torch.tensor([[start.slot, start.position] for start in starts])
        settings = self.sampling.settings([(start.sampling, start.seed) for start in starts])
        packed = torch.cat((given, settings), 1).to(self.positions.device, non_blocking=True)
        slots = packed[:, 0]
        self.positions.index_copy_(0, slots, packed[:, 1])
        first = self._first.expand(len(starts), -1)
        if any(start.embedding is not None for start in starts):
            rows = zip(starts, first, strict=True)
            first = torch.stack([row if s.embedding is None else s.embedding for s, row in rows])
        self.embeddings.index_copy_(0, slots, first)
        self.sampling.begin(slots, packed[:, 2:])
        return slots

    def idle(self, rows: int) -> Tensor:
        """Inputs [2 * rows] on the host that touch no utterance: `rows` rows of padding."""
        given = torch.zeros(2 * rows, dtype=torch.long)
        given[:rows] = self.slots
        return given

    def __call__(self, rows: int, wide: bool) -> None:
        """Make a frame of the `rows` rows in `inputs`; `wide` as in `slot_sampling.py`."""
        slots = self.inputs[:rows]
        hidden = self.talk(rows)
        drawn = self.sampling.rows(slots, wide)
        frame = self.model.draw_frame(
            hidden, drawn.first_codes, drawn.other_codes, self._predict, drawn.other_draws
        )
        self._keep(slots, drawn, frame)
        flags = frame.ended * _ENDED + frame.failed * _FAILED
        self.outputs[:rows].copy_(frame.codes[:, 0] + flags)

    def talk(self, rows: int) -> Tensor:
        """The talker's next outputs [B, H] for the `rows` rows in `inputs`. Their state stays as it
        is, so that doing it again gives the same."""
        slots, text = self.inputs[: 2 * rows].view(2, rows).unbind(0)
        talker = self.model.talker
        inputs = self.embeddings.index_select(0, slots) + talker.text_rows(text)
        positions = self.positions.index_select(0, slots)
        return talker.decode_at(inputs, slots, positions, self.store)

    def _keep(self, slots: Tensor, drawn: DrawnRows, frame: Frame) -> None:
        self.embeddings.index_copy_(0, slots, frame.embedding)
        places = drawn.frames.remainder(RING)
        # A row that ended has no code there, but the codec may have been told of it already.
        self.codes.index_put_((slots, places), frame.codes.clamp(max=self._last_code))
        positions = self.positions.index_select(0, slots) + 1
        positions = positions.masked_fill(slots == self.slots, 0)  # padding stays where it is
        self.positions.index_copy_(0, slots, positions)


def decoded(output: int) -> tuple[int, bool, bool]:
    """First code, whether speech ended with it, whether there was NaN or Inf, of an output."""
    return output & (_ENDED - 1), bool(output & _ENDED), bool(output & _FAILED)


MOST_PROMPT_ROWS = 64
"""Prompts of one step; each program of its attention looks at one of them."""


class PromptStep:
    """Fills prompts' text into the store, for the full-text layout, one prompt behind the other.

    `inputs` int64 is what a step of N positions reads: with B = `rows(N)`, B slots, B first
    places, B + 1 beginnings (`PromptRows`), then N slots, N places and N text ids.
    """

    def __init__(
        self,
        model: SpeechModel,
        slots: int,
        store: SlotStore,
        codec: Tensor,
        positions: int,
        most: int,
    ) -> None:
        """`codec` [1, H] is added to every text vector. At most `positions` at once, and `most` of
        one prompt."""
        self.model, self.slots, self.store, self._codec, self._most = (
            model, slots, store, codec, most,
        )  # fmt: skip
        size = 3 * positions + 3 * MOST_PROMPT_ROWS + 1
        self.inputs = torch.zeros(size, dtype=torch.long, device=model.talker.device)

    @staticmethod
    def rows(positions: int) -> int:
        """Prompts that a step of so many positions can take."""
        return max(1, min(MOST_PROMPT_ROWS, positions // 4))

    def idle(self, positions: int) -> Tensor:
        """Inputs on the host that touch no utterance."""
        rows = self.rows(positions)
        given = torch.zeros(3 * positions + 3 * rows + 1, dtype=torch.long)
        given[:rows] = given[3 * rows + 1 :][:positions] = self.slots
        return given

    def __call__(self, positions: int) -> None:
        rows = self.rows(positions)
        counts = [rows, rows, rows + 1, positions, positions, positions]
        parts = self.inputs[: sum(counts)].split(counts)
        slots, starts, begins, owners, places, ids = parts
        most = min(positions, self._most)
        self._fill(self._text(ids), PromptRows(slots, starts, begins, owners, places, most))

    def fill_text(self, ids: Tensor, slot: int, start: int) -> None:
        """Text ids [L], of any number, to places `start` and following of a slot."""
        self.fill_vectors(self._text(ids), slot, start)

    def fill_prefix(self, prefix: Tensor, slot: int) -> Tensor:
        """Run a prompt's prefix [L, H] into an empty slot; its keys and values, to be kept."""
        self.fill_vectors(prefix, slot, 0)
        return self.store.read(slot, len(prefix))

    def fill_vectors(self, vectors: Tensor, slot: int, start: int) -> None:
        """The talker's inputs [L, H] of places `start` and following of a slot."""
        self._fill(vectors, PromptRows.of([slot], [start], [len(vectors)], vectors.device))

    def _text(self, ids: Tensor) -> Tensor:
        return self.model.talker.text_rows(ids) + self._codec

    def _fill(self, vectors: Tensor, rows: PromptRows) -> None:
        self.model.talker.fill_at(vectors, rows, self.store)
