"""Warming an engine up: every shape that serving will run, and how long each takes when warm."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from realtime_tts.engine.interface import Engine, MeasuredStep, Progress, UtteranceSpec
from tts_scheduler import (
    CodecRun,
    CostModel,
    Decode,
    KVCacheManager,
    KVCacheSize,
    Layout,
    Load,
    Prefill,
    Reservation,
    Scheduler,
    SchedulerConfig,
    StepPlan,
)

_ROWS = (1, 2, 4, 8)
_CODEC_FRAMES = (1, 2, 4)
_WHOLE_TEXT = 4
"""How many times the short text makes a usual full text, whose start costs more."""


def warm_up(
    engine: Engine,
    text: Sequence[int],
    slots: int,
    progress: Progress,
    rows: Sequence[int] = _ROWS,
    *,
    rehearse: bool = True,
) -> list[MeasuredStep]:
    """Speak `text` (token ids) in each number of slots of `rows`, and begin with a longer one in
    the full-text layout; return the measurements.

    Each number is spoken once before it is measured. Without `rehearse` only the first one is: that
    is enough where a size that has not run yet takes no longer than one that has.

    Slots are used from 0 and are free again afterwards.
    """
    counts = [count for count in rows if count <= slots]
    measured: list[MeasuredStep] = []
    for done, count in enumerate(counts):
        progress("warm-up", done, len(counts))
        for layout in (Layout.STREAMING, Layout.FULL_TEXT):
            if rehearse or done == 0:
                _speak(engine, text, count, layout)
            measured += _speak(engine, text, count, layout)
    progress("warm-up", len(counts), len(counts))
    return measured


def taught_scheduler(engine: Engine, config: SchedulerConfig, progress: Progress) -> Scheduler:
    """Warm `engine` up; return a scheduler that has learned its step times.

    An engine may have fewer slots than were asked for: as many as fit into its memory.
    """
    config = replace(config, slots=min(config.slots, engine.info.slots))
    cost = CostModel(row_buckets=engine.info.row_buckets)
    scheduler = Scheduler(config, cost, kv_cache=engine.kv_cache)
    for plan, seconds in engine.warm_up(progress):
        scheduler.cost.observe(Load.of(plan), seconds)
    return scheduler


class ScriptedPages:
    """Assigns pages for plans that are written by hand, to warm up or to measure.

    Rows are never swapped out. No page is added where memory has no limit, nor for rows that could
    never fit, which the engine refuses.
    """

    def __init__(self, slots: int, size: KVCacheSize | None) -> None:
        self._kv = None if size is None else KVCacheManager(slots, size)
        self._prompts: dict[int, int] = {}

    def added_to(self, plan: StepPlan) -> StepPlan:
        """Return the plan with the pages that its rows lack, which have to be free."""
        if self._kv is None:
            return plan
        self._prompts.update((prefill.slot, prefill.positions) for prefill in plan.prefills)
        fits = self._kv.size.fits
        wanted = [(work.id, work.slot, 0) for work in plan.prefills if fits(work.positions)]
        wanted += [(work.id, work.slot, work.frame) for work in plan.decodes]
        reservations = []
        for id, slot, frame in wanted:
            missing = self._kv.missing(slot, self._prompts[slot] + frame)
            if missing:
                pages = tuple(self._kv.free[: -missing - 1 : -1])
                assert len(pages) == missing, "more rows than the memory holds"
                reservations.append(Reservation(id, slot, len(self._kv.table(slot)), pages))
                self._kv.reserve(reservations[-1:])
        return replace(plan, reservations=tuple(reservations))

    def release(self, slot: int) -> None:
        """Free the pages of a slot whose utterance is over."""
        if self._kv is not None:
            self._kv.release(slot)


def _speak(engine: Engine, text: Sequence[int], count: int, layout: Layout) -> list[MeasuredStep]:
    """Speak a short utterance in each of `count` slots, with every length of codec run; in the
    full-text layout only begin a longer one."""
    whole = layout is Layout.FULL_TEXT
    text = [*text] * _WHOLE_TEXT if whole else text
    rows = [(f"warm-up-{slot}", slot) for slot in range(count)]
    for id, _ in rows:
        engine.open(id, UtteranceSpec())
        engine.append(id, text)
        engine.finish(id)
    pages = ScriptedPages(count, engine.kv_cache)
    prompt, tokens = engine.prompt_tokens(UtteranceSpec()), len(text) if whole else 1
    start = StepPlan(tuple(Prefill(id, slot, prompt, tokens, layout) for id, slot in rows))
    plans = [pages.added_to(plan) for plan in (start, *(() if whole else _frames(rows)))]
    measured = [_timed(engine, plan) for plan in plans]
    for id, _ in rows:
        engine.close(id)
    return measured


def _frames(rows: Sequence[tuple[str, int]]) -> list[StepPlan]:
    plans, frame = list[StepPlan](), 0
    for frames in _CODEC_FRAMES:
        for _ in range(frames):
            frame += 1
            decodes = tuple(Decode(id, slot, frame) for id, slot in rows)
            plans.append(StepPlan((), decodes))
        runs = tuple(CodecRun(id, slot, frames) for id, slot in rows)
        plans[-1] = StepPlan((), plans[-1].decodes, runs)
    return plans


def _timed(engine: Engine, plan: StepPlan) -> MeasuredStep:
    started = time.perf_counter()
    engine.step(plan)
    return MeasuredStep(plan, time.perf_counter() - started)
