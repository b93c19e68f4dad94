"""Times the stages of one frame inside real engine steps, at several numbers of rows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from statistics import median
from typing import Any

import torch

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.warm_up import ScriptedPages
from realtime_tts.model import SpeechModel
from realtime_tts.profiler.machine import synchronise
from tts_scheduler import CodecRun, Decode, Layout, Prefill, StepPlan

TALKER, PREDICTOR, CODEC, HOST = "talker", "predictor", "codec", "host"
_WARM_UP = 3
_Run = Callable[[Any, Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Medians over the steps, in seconds.

    `step`: a whole engine step that makes a frame of every row and its sound, not disturbed by any
    other measurement. `stages`: talker, predictor and codec, each waited for. `host`: the rest of
    the same steps (plans, text vectors, first codes, copies, Python); where a device works
    asynchronously, part of it overlaps with the stages, and `step` is less than the sum. `context`:
    positions of each row in the middle of the run.
    """

    rows: int
    context: int
    step: float
    stages: dict[str, float]
    host: float


def time_stages(engine: ModelEngine, rows: int, context: int, repeat: int) -> StageTimes:
    """Run `repeat` frames of `rows` utterances undisturbed, and as many with the stages timed.

    The engine needs that many slots, and turns long enough for `frames_needed`.
    """
    bench = _Bench(engine, rows, context)
    device = engine.model.talker.device
    try:
        for _ in range(_WARM_UP):
            bench.step()
        whole = [_timed(bench.step, device) for _ in range(repeat)]
        captured = engine if isinstance(engine, CapturedEngine) else None
        with _program_clock(captured) if captured else _module_clock(engine.model) as seconds:
            each = [_stages_of(bench.step, seconds, device) for _ in range(repeat)]
    finally:
        bench.close()
    stages = {stage: median(one[stage] for one in each) for stage in (TALKER, PREDICTOR, CODEC)}
    host = median(one[HOST] for one in each)
    return StageTimes(rows, context + _WARM_UP + repeat, median(whole), stages, host)


def frames_needed(repeat: int) -> int:
    """Return the most frames of a turn that `time_stages` makes."""
    return 2 * repeat + _WARM_UP + 2


class _Bench:
    """An engine with `rows` utterances of a long text, each of which makes one frame a step."""

    def __init__(self, engine: ModelEngine, rows: int, context: int) -> None:
        self._engine, self._frame = engine, 0
        self._rows = [(f"profile-{slot}", slot) for slot in range(rows)]
        self._pages = ScriptedPages(rows, engine.kv_cache)
        prompt = engine.prompt_tokens(UtteranceSpec())
        # So long that it cannot be spoken within the run.
        ids = list(islice(cycle(engine.sample_ids), max(1, context - prompt - 2)))
        for id, slot in self._rows:
            engine.open(id, UtteranceSpec(seed=slot))
            engine.append(id, ids)
            engine.finish(id)
            full = Prefill(id, slot, prompt, len(ids), Layout.FULL_TEXT)
            engine.step(self._pages.added_to(StepPlan((full,))))

    def step(self) -> None:
        self._frame += 1
        decodes = tuple(Decode(id, slot, self._frame) for id, slot in self._rows)
        runs = tuple(CodecRun(id, slot, 1) for id, slot in self._rows)
        self._engine.step(self._pages.added_to(StepPlan((), decodes, runs)))

    def close(self) -> None:
        for id, _ in self._rows:
            self._engine.close(id)


def _timed(work: Callable[[], None], device: torch.device) -> float:
    synchronise(device)
    started = time.perf_counter()
    work()
    synchronise(device)
    return time.perf_counter() - started


def _stages_of(
    work: Callable[[], None], seconds: dict[str, float], device: torch.device
) -> dict[str, float]:
    seconds.update(dict.fromkeys(seconds, 0.0))
    whole = _timed(work, device)
    return seconds | {HOST: whole - sum(seconds.values())}


@contextlib.contextmanager
def _program_clock(engine: CapturedEngine) -> Iterator[dict[str, float]]:
    """Time the programs of an engine for a block; yields the seconds by stage, which grow. The
    first codes' head and all draws are in the predictor's program."""
    seconds = dict.fromkeys((TALKER, PREDICTOR, CODEC), 0.0)
    both, device = (engine.steps.graphs, engine.steps.codec_graphs), engine.model.talker.device
    stages = {"talk": TALKER, "frame": PREDICTOR, "codec": CODEC}

    def counted(run: _Run, key: tuple[str, ...], program: Callable[[], None]) -> None:
        took = _timed(partial(run, key, program), device)
        if key[0] in stages:
            seconds[stages[key[0]]] += took

    for graphs in both:
        graphs.run = partial(counted, graphs.run)  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        for graphs in both:
            del graphs.run  # uncovers the class's own


@contextlib.contextmanager
def _module_clock(model: SpeechModel) -> Iterator[dict[str, float]]:
    """Time the stages of an engine of plain modules for a block; yields the seconds by stage, which
    grow.

    Each stage is waited for, which costs some speed where the device works asynchronously.
    """
    seconds = dict.fromkeys((TALKER, PREDICTOR, CODEC), 0.0)
    places: Sequence[tuple[object, str, str]] = (
        (model.talker, "decode", TALKER),
        (model.talker, "logits", TALKER),
        (model.predictor, "codes", PREDICTOR),
        (model.codec, "decode", CODEC),
    )
    for owner, method, stage in places:
        setattr(owner, method, _counted(getattr(owner, method), stage, seconds, model))
    try:
        yield seconds
    finally:
        for owner, method, _ in places:
            delattr(owner, method)  # uncovers the class's own


def _counted(
    method: Callable[..., Any], stage: str, seconds: dict[str, float], model: SpeechModel
) -> Callable[..., Any]:
    device = model.talker.device

    def counted(*arguments: Any, **named: Any) -> Any:
        results: list[Any] = []
        work = partial(method, *arguments, **named)
        seconds[stage] += _timed(lambda: results.append(work()), device)
        return results[0]

    return counted
