"""A fake engine whose steps take as long as an H200's, and whose frames say when they were made."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from realtime_tts.audio.pcm import quantised
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import MeasuredStep, Progress, SoundBlock, StepOutput
from realtime_tts.engine.sound import all_sound
from tts_scheduler import StepPlan

SLOTS = 512
DECODE_MS = (
    (1, 2.33),
    (2, 2.52),
    (4, 3.07),
    (8, 3.41),
    (16, 3.74),
    (32, 4.18),
    (64, 4.93),
    (128, 5.93),
    (256, 6.85),
    (512, 9.55),
)
"""By rows, without the codec. What follows is beside it: measured with the 1.7B talker, in process
(`f5c400f`, medians of four)."""
START_MS = (
    (1, 0.43),
    (24, 0.83),
    (192, 1.19),
    (384, 2.14),
    (768, 4.27),
    (1536, 8.14),
    (3072, 16.9),
    (6144, 35.0),
    (12288, 72.8),
)
"""By text tokens of all prompts, to which each start adds a little."""
CODEC_MS = ((1, 0.62), (8, 0.68), (16, 0.74), (32, 0.93), (64, 1.19), (256, 3.4), (512, 6.54))
"""By frames that go through the codec at once (docs/performance.md)."""

MARK = np.array([30_000, -30_000, 30_000, -30_000, 30_000], dtype=np.int16)
"""Begins a frame; four samples follow that say when its step ended."""
_DIGITS, _BITS, _SPREAD = 4, 10, 8
_TICK = 1e-5
_SPAN = 1 << (_DIGITS * _BITS)


def stamp(now: float) -> np.ndarray:
    """MARK, and the time in samples that survive the way through floats. [9], int16."""
    ticks = int(now / _TICK) % _SPAN
    digits = [(ticks >> (_BITS * place)) % (1 << _BITS) for place in reversed(range(_DIGITS))]
    return np.concatenate([MARK, np.array(digits, dtype=np.int16) * _SPREAD])


def age(pcm: bytes, now: float) -> float | None:
    """Seconds since the first stamped frame in `pcm` was made; None if there is no whole stamp."""
    at = pcm.find(MARK.tobytes())
    begin = at + MARK.nbytes
    if at < 0 or len(pcm) < begin + 2 * _DIGITS:
        return None
    ticks = 0
    for sample in np.frombuffer(pcm, np.int16, _DIGITS, begin).tolist():
        ticks = (ticks << _BITS) | round(sample / _SPREAD)
    return ((int(now / _TICK) - ticks) % _SPAN) * _TICK


def step_seconds(plan: StepPlan) -> float:
    """How long an H200 takes for a step."""
    rows = len(plan.decodes) + len(plan.prefills)
    milliseconds = _between(DECODE_MS, rows) if rows else 0.0
    if plan.prefills:
        tokens = sum(one.text_tokens for one in plan.prefills)
        milliseconds += _between(START_MS, tokens) + 0.004 * len(plan.prefills)
    for frames, runs in Counter(run.frames for run in plan.codec).items():
        milliseconds += _between(CODEC_MS, frames * runs)
    return milliseconds / 1_000


def _between(points: Sequence[tuple[int, float]], at: float) -> float:
    return float(np.interp(at, [x for x, _ in points], [y for _, y in points]))


class StampedEngine(FakeEngine):
    """Steps take what `step_seconds` says, what Python takes included. Sound comes as blocks of
    PCM, as the captured engine gives it: the host need not make PCM of it."""

    def warm_up(self, progress: Progress) -> list[MeasuredStep]:
        taught = super().warm_up(progress)
        return [MeasuredStep(one.plan, step_seconds(one.plan)) for one in taught]

    def step(self, plan: StepPlan) -> StepOutput:
        until = time.monotonic() + step_seconds(plan)
        output = super().step(plan)
        made = [(one.ids, np.asarray(one.samples, np.float32)) for one in all_sound(output)]
        output.samples.clear()
        output.blocks = [SoundBlock(ids, quantised(samples)) for ids, samples in made]
        time.sleep(max(0.0, until - time.monotonic()))
        mark = stamp(time.monotonic())
        for block in output.blocks:
            block.samples[:, : len(mark)] = mark
        return output


def load(progress: Progress) -> StampedEngine:
    """Make the engine; a process finds this function by its name."""
    return StampedEngine(FakeEngineConfig(slots=SLOTS, step_seconds=0.0, max_frames=5_000))
