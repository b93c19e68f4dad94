"""The device's side of `CapturedEngine`: programs by size, their inputs and what they bring back.

Everything here is queued and nothing waits, but `wait`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts.engine.filling import Filling, packed, prompt_numbers
from realtime_tts.engine.graphs import Buckets, Graphs, Landing, Staging
from realtime_tts.engine.interface import Pcm, Progress
from realtime_tts.logs import event
from realtime_tts.model import PromptBuilder, SpeechModel
from realtime_tts.model.alignment import TextView
from realtime_tts.model.codec_step import CodecStep
from realtime_tts.model.frame_step import (
    START_NUMBERS,
    TALK_NUMBERS,
    FrameStep,
    PromptStep,
    Start,
)
from realtime_tts.model.paged_cache import PagedKVCache

log = logging.getLogger(__name__)

_Item = TypeVar("_Item")

PROMPT_POSITIONS = Buckets((32, 64, 128, *range(256, 2561, 256)))
"""Text positions of all full-text prompts that are filled together; 64 of a usual length fit."""

MOST_PROMPT = 256
"""Text positions of one of them; longer ones are not captured."""

CODEC_FRAMES = (8, 4, 2, 1)
"""Frames per row of a codec program; other numbers are made of these."""

CODEC_MOST = 512
"""Frames of all rows of a codec program: the codec's activations take megabytes for each."""

MOST_STARTS = 64
"""Utterances that one program begins; more are begun by several runs of it."""


@dataclass(slots=True)
class Sounding:
    """`frames` frames for the codec of each of some rows, by the number of its first one.

    `places`: where their samples will be, for `CapturedSteps.sound`.
    """

    ids: list[str]
    slots: list[int]
    first: list[int]
    frames: int
    given: int = 0
    places: list[slice] = field(default_factory=list)


class CapturedSteps:
    """Programs over one model's slots. Use from one thread at a time, in inference mode."""

    def __init__(
        self,
        model: SpeechModel,
        prompts: PromptBuilder,
        slots: int,
        store: PagedKVCache,
        *,
        capture: bool,
    ) -> None:
        device, self._slots = model.talker.device, slots
        samples = model.config.codec.samples_per_frame
        self.frame_step = FrameStep(model, slots, store, prompts.bos)
        self.prompt_step = PromptStep(
            self.frame_step, prompts.pad, prompts.bos, PROMPT_POSITIONS.sizes[-1], MOST_PROMPT
        )
        self.codec_step = CodecStep(
            model.slot_codec, slots, self.frame_step.codes, samples, CODEC_MOST
        )
        self.graphs = Graphs(device, capture=capture)
        self.codec_graphs = Graphs(device, capture=capture)
        self._beside: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._beside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        """Where the codec runs: beside the talker, if it is given frames that are there already."""
        longest = model.config.talker.transformer.max_positions
        most = (1 + TALK_NUMBERS + START_NUMBERS) * slots + len(self.prompt_step.inputs)
        entries = 2 * store.pages.shape[1]  # of block tables: a page stands in one of them
        self._staging = Staging(max(most, longest, entries), device)
        store.to_device = self._staging.bring
        self._numbers = self.frame_step.outputs.shape[1]
        self._landing = Landing(slots * self._numbers, 2 * slots * samples, device)
        self._frame_rows = Buckets.of_rows(slots)
        self._codec_rows = {
            frames: Buckets.of_rows(min(slots, CODEC_MOST // frames)) for frames in CODEC_FRAMES
        }
        self._start_rows = Buckets.of_rows(min(slots, MOST_STARTS))
        self._samples = samples

    @property
    def row_buckets(self) -> tuple[int, ...]:
        """Numbers of rows for which there is a program that makes a frame."""
        return self._frame_rows.sizes

    def capture(self, progress: Progress) -> None:
        """All programs but the wide frames, largest first: smaller ones fit into their memory."""
        work: list[Callable[[], None]] = []
        for n in reversed(self._frame_rows.sizes):
            work += [partial(self._ready_talk, n), partial(self._ready_frame, n, False)]
        for frames, rows in self._codec_rows.items():
            work += [partial(self._ready_codec, n, frames) for n in reversed(rows.sizes)]
        work += [partial(self._ready_prompt, n) for n in reversed(PROMPT_POSITIONS.sizes)]
        work += [partial(self._ready_begin, n) for n in reversed(self._start_rows.sizes)]
        free, _ = torch.cuda.mem_get_info()
        started = time.perf_counter()
        for done, ready in enumerate(work):
            progress("capture graphs", done, len(work))
            ready()
        progress("capture graphs", len(work), len(work))
        taken = free - torch.cuda.mem_get_info()[0]
        seconds = round(time.perf_counter() - started, 1)
        event(log, logging.INFO, "engine.graphs", count=len(work), bytes=taken, seconds=seconds)

    # What a step is made of, in this order.

    def fill_prefix(self, prefix: Tensor, slot: int) -> Tensor:
        """Compute a prompt's prefix [L, H] in an empty slot; its keys and values, a copy."""
        return self.prompt_step.fill_prefix(prefix, slot)

    def fill(self, fillings: Sequence[Filling]) -> None:
        """Text of full-text prompts, as many together as a program takes."""
        usual = [filling for filling in fillings if len(filling.ids) <= MOST_PROMPT]
        for part in packed(usual, PROMPT_POSITIONS.sizes[-1]):
            self._fill(part)
        for filling in fillings:
            if len(filling.ids) > MOST_PROMPT:
                self._fill_long(filling)

    def fill_vectors(self, vectors: Tensor, slot: int, start: int) -> None:
        """A prompt [L, H] that is not text alone to positions `start` and following of a slot."""
        self.prompt_step.fill_vectors(vectors, slot, start)

    def begin(self, starts: Sequence[Start]) -> None:
        """New utterances, ready for their first frame."""
        for part in _parts(starts, self._start_rows.sizes[-1]):
            rows = self._start_rows.fit(len(part))
            self._ready_begin(rows, late=True)
            padding = [self.frame_step.no_start] * (rows - len(part))
            numbers = self.frame_step.numbers([*part, *padding])
            self._staging.send(numbers, self.frame_step.starts(rows))
            self.graphs.run(("begin", rows), partial(self._begin, rows))

    def resume(self, slot: int, spoken: Tensor, embedding: Tensor) -> None:
        """A new utterance goes on behind frames that were made elsewhere: see `FrameStep`."""
        self.frame_step.resume(slot, spoken, embedding)

    def make_frames(
        self,
        slots: Sequence[int],
        text: Sequence[int],
        views: Sequence[TextView],
        wide: bool,
    ) -> None:
        """A frame of each slot; the last ones talk first, eat a text id each, and look at a part
        of their text. Results to `outputs`."""
        step, count = self.frame_step, len(slots)
        rows, talking = self._frame_rows.fit(count), len(text)
        self._ready_frame(rows, wide, late=True)
        numbers = [*slots, *[self._slots] * (rows - count)]
        talkers = 0
        if talking:
            talkers = self._frame_rows.fit(talking)
            self._ready_talk(talkers, late=True)
        padding = talkers - talking
        none = [0] * padding
        numbers += [*slots[count - talking :], *[self._slots] * padding, *text, *none]
        numbers += [*(view.first for view in views), *none]
        numbers += [*(view.length for view in views), *none]
        self._staging.send(numbers, step.inputs(rows, talkers))
        if talking:
            self.graphs.run(("talk", talkers), partial(step.talk, talkers))
        self.graphs.run(("frame", rows, wide), partial(step, rows, wide))
        self._landing.outputs(step.outputs[:count])

    def make_sound(self, soundings: Sequence[Sounding], *, coming: bool) -> None:
        """Frames to samples; no slot twice. Rows of all soundings share calls of the codec.
        `coming`: among the frames are those of this step, which `make_frames` was asked for."""
        if self._beside is None:
            self._make_sound(soundings)
            return
        if coming:
            self._beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._beside):
            self._make_sound(soundings)

    def _make_sound(self, soundings: Sequence[Sounding]) -> None:
        for frames in CODEC_FRAMES:
            while taking := [each for each in soundings if each.frames - each.given >= frames]:
                slots = [slot for each in taking for slot in each.slots]
                first = [number + each.given for each in taking for number in each.first]
                end = self._run_codec(slots, first, frames)
                for each in reversed(taking):  # they lie one behind the other
                    start = end - len(each.slots) * frames * self._samples
                    each.places.append(slice(start, end))
                    each.given += frames
                    end = start

    def wait_for_frames(self) -> None:
        """Until `outputs` can be read; the codec may still be at work."""
        self._landing.wait_for_outputs()

    def wait(self) -> None:
        """Until everything queued has been done; then all results can be read."""
        if self._beside is not None:
            torch.cuda.current_stream().wait_stream(self._beside)
        self._landing.wait()
        self._staging.reset()

    def outputs(self, count: int) -> NDArray[np.int32]:
        """Of `make_frames` [count, 17], as `frame_step.decoded` reads them; not to be kept."""
        return self._landing.numbers(count * self._numbers).reshape(count, self._numbers)

    def sound(self, sounding: Sounding) -> Pcm:
        """What the codec made of it [rows, samples]: a copy."""
        return self._landing.block(len(sounding.slots), sounding.places)

    def reset(self) -> None:
        """All results have been read."""
        self._landing.reset()

    # Programs, captured once, while their inputs name no utterance.

    def _ready_talk(self, rows: int, late: bool = False) -> None:
        step = self.frame_step
        self._ready(("talk", rows), partial(step.idle, rows), partial(step.talk, rows), late)

    def _ready_frame(self, rows: int, wide: bool, late: bool = False) -> None:
        step = self.frame_step
        key = ("frame", rows, wide)
        self._ready(key, partial(step.idle, rows), partial(step, rows, wide), late)

    def _ready_codec(self, rows: int, frames: int, late: bool = False) -> None:
        step = self.codec_step
        key = ("codec", rows, frames)
        idle, program = partial(step.idle, rows), partial(step, rows, frames)
        self._ready(key, idle, program, late, self.codec_graphs)

    def _ready_prompt(self, positions: int, late: bool = False) -> None:
        step = self.prompt_step
        idle, program = partial(step.idle, positions), partial(step, positions)
        self._ready(("prompt", positions), idle, program, late)

    def _ready_begin(self, rows: int, late: bool = False) -> None:
        idle = partial(self.frame_step.idle_starts, rows)
        self._ready(("begin", rows), idle, partial(self._begin, rows), late)

    def _ready(
        self,
        key: Hashable,
        idle: Callable[[], None],
        program: Callable[[], None],
        late: bool,
        graphs: Graphs | None = None,
    ) -> None:
        graphs = graphs or self.graphs
        if not graphs.has(key):
            idle()
            graphs.capture(key, program, late)

    # Details.

    def _begin(self, rows: int) -> None:
        self.codec_step.begin(self.frame_step.begin(rows))

    def _fill(self, fillings: Sequence[Filling]) -> None:
        step = self.prompt_step
        positions = PROMPT_POSITIONS.fit(sum(len(filling.ids) for filling in fillings))
        while step.rows(positions) < len(fillings):
            positions = PROMPT_POSITIONS.fit(positions + 1)
        self._ready_prompt(positions, late=True)
        self._staging.send(
            prompt_numbers(fillings, positions, step.rows(positions), self._slots), step.inputs
        )
        self.graphs.run(("prompt", positions), partial(step, positions))

    def _fill_long(self, filling: Filling) -> None:
        ids = self.prompt_step.inputs.new_zeros(len(filling.ids))
        self._staging.send(filling.ids, ids)
        self.prompt_step.fill_text(ids, filling.slot, filling.start)

    def _run_codec(self, slots: Sequence[int], first: Sequence[int], frames: int) -> int:
        """`frames` frames of each slot, from its `first` on; where their samples will end."""
        step, buckets, end = self.codec_step, self._codec_rows[frames], 0
        for part in _parts(list(zip(slots, first, strict=True)), buckets.sizes[-1]):
            rows = buckets.fit(len(part))
            self._ready_codec(rows, frames, late=True)
            part_slots, part_first = zip(*part, strict=True)
            padding = [0] * (rows - len(part))
            scratch = [self._slots] * len(padding)
            self._staging.send([*part_slots, *scratch, *part_first, *padding], step.inputs)
            self.codec_graphs.run(("codec", rows, frames), partial(step, rows, frames))
            end = self._landing.samples(step.sound(len(part), frames)).stop
        return end


def _parts(items: Sequence[_Item], most: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]
