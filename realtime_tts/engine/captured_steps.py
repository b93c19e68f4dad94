"""The device side of `CapturedEngine`: programs by size, with their input and output buffers.

Work is only queued here; `wait_for_frames` and `wait` are what blocks.
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

from realtime_tts.engine.filling import Filling, packed, prompt_numbers
from realtime_tts.engine.graphs import Buckets, Graphs, InputBuffer, OutputBuffer
from realtime_tts.engine.interface import Pcm, Progress
from realtime_tts.logs import event
from realtime_tts.model import PromptBuilder, SpeechModel
from realtime_tts.model.alignment import TextView
from realtime_tts.model.codec_step import CodecStep
from realtime_tts.model.frame_step import (
    START_ENTRIES,
    START_NUMBERS,
    TALK_NUMBERS,
    FrameStep,
    PromptStep,
    Start,
)
from realtime_tts.model.paged_cache import NO_PAGES, NewPages, PagedKVCache

log = logging.getLogger(__name__)

_Item = TypeVar("_Item")

PROMPT_POSITIONS = Buckets((32, 48, 64, 96, 128, 192, *range(256, 2561, 256)))
"""Text positions of all full-text prompts that are filled together: 64 of usual length fit."""

MOST_PROMPT = 256
"""The most text positions of one such prompt; longer prompts are not captured."""

CODEC_FRAMES = (8, 4, 2, 1)
"""Frames per row of a codec program; other numbers of frames take several runs."""

CODEC_MOST = 512
"""The most frames of all rows of a codec program: the activations take megabytes for each."""

MOST_STARTS = 64
"""The most utterances that one program begins; more take several runs."""


@dataclass(slots=True)
class CodecJob:
    """A codec run of `frames` frames for each slot in `slots`, from its frame number in `first` on.

    `given`: how many of the frames are queued already. `spans`: where their samples will be, for
    `CapturedSteps.sound`.
    """

    ids: list[str]
    slots: list[int]
    first: list[int]
    frames: int
    given: int = 0
    spans: list[slice] = field(default_factory=list)


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
            # The codec's own stream: it runs beside the talker on frames that were made before.
            self._beside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        longest = model.config.talker.transformer.max_positions
        most = (1 + TALK_NUMBERS + START_NUMBERS) * slots + len(self.prompt_step.inputs)
        entries = 2 * store.pages.shape[1]  # of block tables: a page is in one of them only
        self._input_buffer = InputBuffer(max(most, longest, entries), device)
        store.to_device = self._input_buffer.upload
        self._numbers = self.frame_step.outputs.shape[1]
        self._output_buffer = OutputBuffer(slots * self._numbers, 2 * slots * samples, device)
        self._frame_rows = Buckets.of_rows(slots)
        self._codec_rows = {
            frames: Buckets.of_rows(min(slots, CODEC_MOST // frames)) for frames in CODEC_FRAMES
        }
        self._start_rows = Buckets.of_rows(min(slots, MOST_STARTS))
        self._samples = samples

    @property
    def row_buckets(self) -> tuple[int, ...]:
        """The numbers of rows for which there is a program that makes a frame."""
        return self._frame_rows.sizes

    def capture(self, progress: Progress) -> None:
        """Capture all programs except wide frames, largest first: smaller ones reuse memory."""
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

    # The parts of a step, in this order.

    def entries_with(self, starts: int) -> int:
        """Return how many entries of block tables the first program that begins so many utterances
        can write."""
        most = min(starts, self._start_rows.sizes[-1])
        return START_ENTRIES * self._start_rows.fit(most) if most else 0

    def begin(self, starts: Sequence[Start], added: NewPages) -> None:
        """Add pages to block tables, `entries_with` these starts at most, and prepare the slots of
        new utterances."""
        for part in _parts(starts, self._start_rows.sizes[-1]):
            rows = self._start_rows.fit(len(part))
            self._ready_begin(rows, late=True)
            padding = [self.frame_step.no_start] * (rows - len(part))
            numbers = self.frame_step.numbers([*part, *padding], added)
            self._input_buffer.send(numbers, self.frame_step.starts(rows))
            self.graphs.run(("begin", rows), partial(self._begin, rows))
            added = NO_PAGES

    def fill(self, fillings: Sequence[Filling]) -> None:
        """Write the text of full-text prompts into the KV cache, in as few runs as possible."""
        usual = [filling for filling in fillings if len(filling.ids) <= MOST_PROMPT]
        for part in packed(usual, PROMPT_POSITIONS.sizes[-1]):
            self._fill(part)
        for filling in fillings:
            if len(filling.ids) > MOST_PROMPT:
                self._fill_long(filling)

    def make_frames(
        self,
        slots: Sequence[int],
        text: Sequence[int],
        views: Sequence[TextView],
        wide: bool,
    ) -> None:
        """Make a frame of each slot; the results go to `outputs`. The last `len(text)` slots run
        the talker first, each with a text id and a view of its text."""
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
        self._input_buffer.send(numbers, step.inputs(rows, talkers))
        if talking:
            self.graphs.run(("talk", talkers), partial(step.talk, talkers))
        self.graphs.run(("frame", rows, wide), partial(step, rows, wide))
        self._output_buffer.outputs(step.outputs[:count])

    def make_sound(self, jobs: Sequence[CodecJob], *, coming: bool) -> None:
        """Queue frames for the codec, each slot at most once; rows of all jobs share codec calls.
        `coming`: some frames are made by this step's `make_frames`."""
        if self._beside is None:
            self._make_sound(jobs)
            return
        if coming:
            self._beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._beside):
            self._make_sound(jobs)

    def _make_sound(self, jobs: Sequence[CodecJob]) -> None:
        for frames in CODEC_FRAMES:
            while taking := [each for each in jobs if each.frames - each.given >= frames]:
                slots = [slot for each in taking for slot in each.slots]
                first = [number + each.given for each in taking for number in each.first]
                end = self._run_codec(slots, first, frames)
                for each in reversed(taking):  # their samples are contiguous
                    start = end - len(each.slots) * frames * self._samples
                    each.spans.append(slice(start, end))
                    each.given += frames
                    end = start

    def wait_for_frames(self) -> None:
        """Wait until `outputs` can be read; the codec may still be running."""
        self._output_buffer.wait_for_outputs()

    def wait(self) -> None:
        """Wait until all queued work is done; then all results can be read."""
        if self._beside is not None:
            torch.cuda.current_stream().wait_stream(self._beside)
        self._output_buffer.wait()
        self._input_buffer.reset()

    def outputs(self, count: int) -> NDArray[np.int32]:
        """Return the results of `make_frames` [count, 17], as `frame_step.decoded` reads them: a
        view of memory that the next step overwrites."""
        return self._output_buffer.numbers(count * self._numbers).reshape(count, self._numbers)

    def sound(self, job: CodecJob) -> Pcm:
        """Return a copy of the samples [rows, n] of a codec job."""
        return self._output_buffer.block(len(job.slots), job.spans)

    def reset(self) -> None:
        """Free the output buffer for the next step, after all results have been read."""
        self._output_buffer.reset()

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
        self._input_buffer.send(
            prompt_numbers(fillings, positions, step.rows(positions), self._slots), step.inputs
        )
        self.graphs.run(("prompt", positions), partial(step, positions))

    def _fill_long(self, filling: Filling) -> None:
        ids = self.prompt_step.inputs.new_zeros(len(filling.ids))
        self._input_buffer.send(filling.ids, ids)
        self.prompt_step.fill_text(ids, filling.slot, filling.start)

    def _run_codec(self, slots: Sequence[int], first: Sequence[int], frames: int) -> int:
        """Decode `frames` frames of each slot, from its frame number in `first` on; return where
        their samples will end."""
        step, buckets, end = self.codec_step, self._codec_rows[frames], 0
        for part in _parts(list(zip(slots, first, strict=True)), buckets.sizes[-1]):
            rows = buckets.fit(len(part))
            self._ready_codec(rows, frames, late=True)
            part_slots, part_first = zip(*part, strict=True)
            padding = [0] * (rows - len(part))
            scratch = [self._slots] * len(padding)
            self._input_buffer.send([*part_slots, *scratch, *part_first, *padding], step.inputs)
            self.codec_graphs.run(("codec", rows, frames), partial(step, rows, frames))
            end = self._output_buffer.samples(step.sound(len(part), frames)).stop
        return end


def _parts(items: Sequence[_Item], most: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]
