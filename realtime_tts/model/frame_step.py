"""One frame for a batch of slots without reading anything on the host, for a CUDA graph to capture.

Everything that a row carries from frame to frame is on the device at a fixed address, by slot: the
sum of its last frame's embeddings, its next position, its sampling state, and a ring of codes that
the codec has not read yet. Slot number `slots` is for the rows that pad a batch.

A frame is two programs: `talk` advances the talker by a position, `FrameStep.__call__` draws the
frame from its output. A prompt that is computed as a whole leaves the talker's output at its end
(`PromptStep`), and the first frame needs no `talk`. In the streaming layout all of the prompt
except the last position comes from a cache, and that position is an ordinary row of a `talk`, with
codec bos in place of the embedding sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts.kernels import keep_frame
from realtime_tts.kernels.first_codes import SETTINGS
from realtime_tts.kernels.kept_frames import ENDED, FAILED, SlotFrames
from realtime_tts.model.alignment import AlignmentHeads, PagedAlignment
from realtime_tts.model.fused import FusedPredictor
from realtime_tts.model.paged_cache import (
    NO_PAGES,
    SCRATCH_PAGE,
    NewPages,
    PagedKVCache,
    PromptRows,
)
from realtime_tts.model.slot_sampling import SlotSampling
from realtime_tts.model.speech_model import SpeechModel
from realtime_tts.sampling import Sampling

RING = 32
"""The most frames of a slot that may wait for the codec."""


@dataclass(frozen=True, slots=True)
class Start:
    """An utterance about to begin in `slot`; its first frame is made from position `position`.
    `prefix`: which of the kept prefixes' positions are its first ones; none if these are in its
    pages already."""

    slot: int
    position: int
    sampling: Sampling
    seed: int
    prefix: range = range(0)


START_ENTRIES = 8
"""Number of pages that block tables can get with each start: what a usual prompt takes, and some
more for other rows of the step."""

START_NUMBERS = 4 + SETTINGS + 2 * START_ENTRIES
"""Number of int64 that describe a `Start` and its share of new pages on the device."""

TALK_NUMBERS = 4
"""Number of int64 that a `talk` reads for a row: its slot, its text id, and the first position and
the length of its text view."""


class FrameStep:
    """State of `slots` slots, and the step that advances a batch of them by one frame.

    `outputs` [slots, 17] int32 is what a frame leaves: its codes, with flags in the first one, and
    the token of its text that it speaks (`decoded`); `inputs` is what it reads.
    """

    def __init__(self, model: SpeechModel, slots: int, store: PagedKVCache, bos: Tensor) -> None:
        """`bos` [1, H]: the codec vector that a new utterance begins with."""
        talker, device = model.talker, model.talker.device
        assert talker.config.vocab < ENDED, "codes and flags share a number"
        self.model, self.slots, self.store = model, slots, store
        self.sampling = SlotSampling(model.config, slots, device)
        self.embeddings = bos.repeat(slots + 1, 1)
        self.hidden = torch.zeros_like(self.embeddings)
        """The talker's last outputs, by slot: [slots + 1, H]."""
        self.positions = torch.zeros(slots + 1, dtype=torch.long, device=device)
        groups = talker.config.code_groups
        self.codes = torch.zeros(slots + 1, RING, groups, dtype=torch.long, device=device)
        """Codes [slots + 1, RING, 16]; frame number f of a slot is in place f % RING."""
        numbers = (1 + TALK_NUMBERS) * slots
        self._inputs = torch.zeros(numbers, dtype=torch.long, device=device)
        self._starts = torch.zeros(slots * START_NUMBERS, dtype=torch.long, device=device)
        self.outputs = torch.zeros(slots, groups + 1, dtype=torch.int32, device=device)
        shape = talker.config.transformer
        self._heads = AlignmentHeads(model.config.alignment_heads, shape, device)
        self.tokens = torch.zeros(slots + 1, dtype=torch.int32, device=device)
        """The token that the alignment heads attended to in the talker's last position, counted in
        the view of the text, by slot. 0 after a prompt that was computed as a whole, or without
        heads."""
        self.no_start = Start(slots, 0, Sampling(), 0)
        """Pads the starts of a batch: its slot is the one for padding."""
        self._bos = bos
        self._frames = SlotFrames(
            self.embeddings, self.codes, self.positions, self.sampling.state.drawn, self.tokens
        )
        fused = FusedPredictor(model.predictor, slots, device)
        self._predict, self.persistent_predictor = fused.codes, fused.persistent
        self.persistent_talker = talker.prepare_steps(tuple(self._heads.by_layer))
        """Whether one kernel computes a whole position of few rows."""

    def numbers(self, starts: Sequence[Start], added: NewPages = NO_PAGES) -> list[int]:
        """Return the numbers that `begin` reads of these starts, and of new pages, START_ENTRIES
        for each start at most."""
        where, pages = added
        padding = START_ENTRIES * len(starts) - len(where)
        assert padding >= 0, "more pages than a begin can add"
        numbers = [*where, *[self.store.scratch_entry] * padding]
        numbers += [*pages, *[SCRATCH_PAGE] * padding]
        numbers += [start.slot for start in starts]
        numbers += [start.prefix.start for start in starts]
        numbers += [len(start.prefix) for start in starts]
        numbers += [start.position for start in starts]
        for each in self.sampling.settings([(start.sampling, start.seed) for start in starts]):
            numbers += each
        return numbers

    def starts(self, count: int) -> Tensor:
        """Return where the `numbers` of `count` starts go: int64 [count * START_NUMBERS]."""
        return self._starts[: count * START_NUMBERS]

    def idle_starts(self, count: int) -> None:
        """Set starts that touch no utterance."""
        numbers = torch.tensor(self.numbers([self.no_start] * count), device=self._starts.device)
        self.starts(count).copy_(numbers)

    def begin(self, count: int) -> Tensor:
        """Begin `count` new utterances, from `starts`: with their pages, their prefixes, and all
        other state new. Returns the slots [n]."""
        entries, rows, places, settings = self.starts(count).split(
            (2 * START_ENTRIES * count, 3 * count, count, SETTINGS * count)
        )
        self.store.write(entries)
        self.store.copy_prefixes(self.store.prefixes, rows)
        slots = rows[:count]
        self.positions.index_copy_(0, slots, places)
        self.embeddings.index_copy_(0, slots, self._bos.expand(count, -1))
        self.tokens.index_fill_(0, slots, 0)
        self.sampling.begin(slots, settings.view(count, SETTINGS))
        return slots

    def resume(self, slot: int, spoken: Tensor, embedding: Tensor) -> None:
        """Continue a new utterance after frames `spoken` [k, 16] that another engine made, the last
        of which has this `embedding` [H]."""
        self.embeddings[slot] = embedding
        self.positions[slot] += len(spoken)
        self.sampling.resume(slot, spoken[:, 0])

    def inputs(self, rows: int, talking: int) -> Tensor:
        """Return where a frame of `rows` rows reads its slots [rows] and, directly after them,
        where the `talk` of `talking` rows reads its slots, its text ids, and the first positions
        and the lengths of its text views."""
        return self._inputs[self.slots - rows : self.slots + TALK_NUMBERS * talking]

    def idle(self, rows: int) -> None:
        """Set inputs that touch no utterance: `rows` rows of padding that talk and draw."""
        slots, rest = self.inputs(rows, rows).tensor_split((2 * rows,))
        slots.fill_(self.slots)
        rest.zero_()

    def talk(self, rows: int) -> None:
        """Compute the talker's next output in `rows` rows, into `hidden`. The rest of their state
        stays as it is, so that a repetition gives the same."""
        slots, text, firsts, counts = self.inputs(0, rows).view(TALK_NUMBERS, rows).unbind(0)
        talker, store = self.model.talker, self.store
        tables, alignment = store.tables, None
        inputs = self.embeddings.index_select(0, slots) + talker.text_rows(text)
        positions = self.positions.index_select(0, slots)
        if self._heads:
            alignment = PagedAlignment(self._heads, store.pages, tables, slots, firsts, counts)
        observe = None if alignment is None else alignment.observe
        said = talker.decode_at(inputs, slots, positions, store, observe)
        self.hidden.index_copy_(0, slots, said)
        if alignment is not None:
            self.tokens.index_copy_(0, slots, alignment.tokens())

    def __call__(self, rows: int, wide: bool) -> None:
        """Draw the frame of the last talker output in `rows` rows; `wide`: see `is_wide`."""
        slots = self.inputs(rows, 0)
        model, sampling = self.model, self.sampling
        drawn = model.draw_codes(
            self.hidden.index_select(0, slots),
            lambda logits: sampling.first_codes(logits, slots, wide),
            self._predict,
        )
        keep_frame(slots, drawn, model.code_tables, self._frames, self.outputs[:rows])


class Outputs(NamedTuple):
    """The results of n rows."""

    codes: NDArray[np.int16]
    """Codes [n, 16]; they mean nothing where speech ended or failed."""
    tokens: list[int]
    """The token that each row speaks, counted in its text view."""
    ended: list[bool]
    failed: list[bool]
    """Whether there was NaN or Inf."""


def decoded(outputs: NDArray[np.int32]) -> Outputs:
    """Unpack `FrameStep.outputs` [n, 17]."""
    first = outputs[:, 0]
    codes = (outputs[:, :-1] & (ENDED - 1)).astype(np.int16)
    over, bad = (first & ENDED != 0).tolist(), (first & FAILED != 0).tolist()
    return Outputs(codes, outputs[:, -1].tolist(), over, bad)


MOST_PROMPT_ROWS = 64
"""The most prompts of one step; each program of the attention handles one of them."""


class PromptStep:
    """Computes prompts after their prefixes, one prompt after the other. Keys and values go into
    the store, and the talker's output at the end of each prompt into the `hidden` of `frame_step`.

    `inputs` int64 is what a step of N positions reads: with B = `rows(N)`, B slots, B first
    positions, B + 1 beginnings (`PromptRows`), then N slots, N positions and N text ids.
    """

    def __init__(
        self, frame_step: FrameStep, pad: Tensor, bos: Tensor, positions: int, most: int
    ) -> None:
        """`pad` [1, H] is added to the text vectors of a prompt, `bos` [1, H] to its last one. A
        step has at most `positions` positions, and at most `most` of one prompt."""
        self._talker, self._store = frame_step.model.talker, frame_step.store
        self.slots, self._hidden = frame_step.slots, frame_step.hidden
        self._pad, self._bos, self._most = pad, bos, most
        size = 3 * positions + 3 * MOST_PROMPT_ROWS + 1
        self.inputs = torch.zeros(size, dtype=torch.long, device=self._talker.device)

    @staticmethod
    def rows(positions: int) -> int:
        """Return how many prompts a step of `positions` positions can take."""
        return max(1, min(MOST_PROMPT_ROWS, positions // 4))

    def idle(self, positions: int) -> None:
        """Set inputs that touch no utterance."""
        rows = self.rows(positions)
        self.inputs.zero_()
        self.inputs[:rows] = self.inputs[3 * rows + 1 :][:positions] = self.slots

    def __call__(self, positions: int) -> None:
        rows = self.rows(positions)
        counts = [rows, rows, rows + 1, positions, positions, positions]
        parts = self.inputs[: sum(counts)].split(counts)
        slots, starts, begins, owners, places, ids = parts
        most = min(positions, self._most)
        self._fill_text(ids, PromptRows(slots, starts, begins, owners, places, most))

    def fill_text(self, ids: Tensor, slot: int, start: int) -> None:
        """Compute text ids [L], of any number, at positions `start` and following of a slot."""
        self._fill_text(ids, PromptRows.of([slot], [start], [len(ids)], ids.device))

    def fill_prefix(self, prefix: Tensor, slot: int) -> Tensor:
        """Compute a prompt's prefix [L, H] in an empty slot; return a copy of its keys and values
        [layers, 2, kv_heads, L, D]."""
        self.fill_vectors(prefix, slot, 0)
        return self._store.read(slot, len(prefix))

    def fill_vectors(self, vectors: Tensor, slot: int, start: int) -> None:
        """Compute the talker's inputs [L, H] at positions `start` and following of a slot."""
        self._fill(vectors, PromptRows.of([slot], [start], [len(vectors)], vectors.device))

    def _fill_text(self, ids: Tensor, rows: PromptRows) -> None:
        text, last = self._talker.text_rows(ids), rows.last
        vectors = text + self._pad
        vectors.index_copy_(0, last, text.index_select(0, last) + self._bos)
        self._fill(vectors, rows)

    def _fill(self, vectors: Tensor, rows: PromptRows) -> None:
        said = self._talker.fill_at(vectors, rows, self._store)
        self._hidden.index_copy_(0, rows.slots, said.index_select(0, rows.last))
