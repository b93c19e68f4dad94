"""What a captured step gives to its codec, and the blocks of PCM that come of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from realtime_tts.engine.captured_steps import CapturedSteps, Sounding
from realtime_tts.engine.interface import Pcm, SoundBlock, StepOutput
from realtime_tts.engine.model_engine import Row


class StepSound:
    """The sound of one step of the utterances in `rows`."""

    def __init__(self, steps: CapturedSteps, rows: Mapping[str, Row]) -> None:
        self._steps, self._rows = steps, rows
        self._soundings: list[Sounding] = []

    def __bool__(self) -> bool:
        """Whether the codec was given anything."""
        return bool(self._soundings)

    def give(self, wanted: Mapping[str, int], *, coming: bool = True) -> None:
        """Queue so many frames of each row for the codec, as if those still being made were
        frames. `coming`: those are among them."""
        alike: defaultdict[int, list[str]] = defaultdict(list)
        for id, frames in wanted.items():
            if frames > 0:
                alike[frames].append(id)
        soundings = []
        for frames, ids in alike.items():
            rows = [self._rows[id] for id in ids]
            slots, first = [row.slot for row in rows], [row.sounded for row in rows]
            soundings.append(Sounding(ids, slots, first, frames))
            for row in rows:
                row.sounded += frames
        if soundings:
            self._steps.make_sound(soundings, coming=coming)
        self._soundings += soundings

    def take(self, output: StepOutput) -> None:
        """Add all sound of the step to `output`, whose rows have been read; results must be here.

        Rows that go on are given as the codec made them. One that ended has a block of its own: it
        may have been given twice, and not all of that were frames.
        """
        over = output.ended.keys() | output.failed.keys()
        last: defaultdict[str, list[Pcm]] = defaultdict(list)
        for sounding in self._soundings:
            ids, samples = sounding.ids, self._steps.sound(sounding)
            size = samples.shape[1] // sounding.frames
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
            none = max(0, -self._rows[id].pending)  # the codec was given what speech ended with
            if real := len(sound) - none * size:
                output.blocks.append(SoundBlock((id,), sound[None, :real]))
