"""The codec runs of a captured step, and the blocks of PCM that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from realtime_tts.engine.captured_steps import CapturedSteps, CodecJob
from realtime_tts.engine.interface import Pcm, SoundBlock, StepOutput
from realtime_tts.engine.model_engine import Row


class StepSound:
    """The sound of one captured step, for the utterances in `rows`."""

    def __init__(self, steps: CapturedSteps, rows: Mapping[str, Row]) -> None:
        self._steps, self._rows = steps, rows
        self._jobs: list[CodecJob] = []

    def queue(self, wanted: Mapping[str, int], *, coming: bool = True) -> None:
        """Queue the `wanted` number of frames of each row for the codec. A frame that this step
        still makes counts, even if it turns out to be the end of speech. `coming`: there are such
        frames."""
        alike: defaultdict[int, list[str]] = defaultdict(list)
        for id, frames in wanted.items():
            if frames > 0:
                alike[frames].append(id)
        jobs = []
        for frames, ids in alike.items():
            rows = [self._rows[id] for id in ids]
            slots, first = [row.slot for row in rows], [row.sounded for row in rows]
            jobs.append(CodecJob(ids, slots, first, frames))
            for row in rows:
                row.sounded += frames
        if jobs:
            self._steps.make_sound(jobs, coming=coming)
        self._jobs += jobs

    def collect(self, output: StepOutput) -> None:
        """Add all sound of the step to `output`, after the rows were read and `CapturedSteps.wait`.

        Rows that go on share blocks, as the codec made them. A row that ended has a block of its
        own: it may have been queued twice, and its last frame may have been the end of speech.
        """
        over = output.ended.keys() | output.failed.keys()
        last: defaultdict[str, list[Pcm]] = defaultdict(list)
        for job in self._jobs:
            ids, samples = job.ids, self._steps.sound(job)
            size = samples.shape[1] // job.frames
            if not over.isdisjoint(ids):
                for id, row in zip(ids, samples, strict=True):
                    if id in output.ended:
                        last[id].append(row)
                on_air = [number for number, id in enumerate(ids) if id not in over]
                ids, samples = [ids[number] for number in on_air], samples[on_air]
            if ids:
                output.blocks.append(SoundBlock(ids, samples))
        for id, parts in last.items():
            sound = np.concatenate(parts)
            none = max(0, -self._rows[id].pending)  # the end of speech went through the codec too
            if real := len(sound) - none * size:
                output.blocks.append(SoundBlock((id,), sound[None, :real]))
