"""What a step costs the host: `python tests/engine/host_time.py --rows 1,64,256,512,1000`.

The real loop, scheduler, guards and wire, with an engine that computes nothing: it answers at once
with a frame for every planned row and, where the codec ran, noise. Time is virtual; a step takes a
frame's 80 ms, so that every row is in every plan, which is the most a machine can be asked for.
Each row gets a text token a second. Prints a JSON object a number of rows: CPU milliseconds per
step by stage, the median of rounds and the
least; the stages are those of the least, for a machine has other work, too.

    commands  applying what came in, expiring, counting load
    plan      who does what in this step
    guards    watching codes and sound
    commit    telling the scheduler what was done, and how long it took
    events    PCM and the events that carry it
    publish   one message to the front: msgpack, without the socket

`--profile FILE` writes where the time goes, function by function.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from realtime_tts.audio.pcm import quantised
from realtime_tts.engine import wire
from realtime_tts.engine.child import Recorder
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import SoundBlock, StepOutput, UtteranceSpec
from realtime_tts.engine.link import Append, Event, Open
from realtime_tts.engine.loop import EngineLoop
from realtime_tts.garbage import calm_garbage_collector
from tts_scheduler import KVCacheSize, Scheduler, SchedulerConfig, StepPlan

FRAME_SECONDS = 0.08
FRAME_SAMPLES = 1_920
LEAD_SECONDS = 2.0
"""Steps are quick until every row has this much lead; then they take a frame each."""
STAGES = ("commands", "plan", "guards", "commit", "events", "publish")


class Stopwatch:
    """CPU time of this thread by stage; a stage inside another one is not counted twice."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._stack: list[str] = ["outside"]
        self._since = time.thread_time_ns()

    def _lap(self) -> None:
        now = time.thread_time_ns()
        self.spent[self._stack[-1]] += now - self._since
        self._since = now

    def wrap(self, owner: object, name: str, stage: str) -> None:
        """Count calls of the method `name` of `owner` as `stage`."""
        call: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: Any) -> Any:
            self._lap()
            self._stack.append(stage)
            try:
                return call(*arguments)
            finally:
                self._lap()
                self._stack.pop()

        setattr(owner, name, timed)


class NullEngine(FakeEngine):
    """Frames and sound for whatever was planned, without computing; it moves the clock."""

    def __init__(self, rows: int, kind: str, pages: int | None) -> None:
        super().__init__(FakeEngineConfig(slots=rows, step_seconds=0.0))
        most = self.config.max_frames
        self._memory = None if pages is None else KVCacheSize(pages, 16, pages * 16, most)
        random = np.random.default_rng(1)
        noise = random.uniform(-0.3, 0.3, (rows, 16 * FRAME_SAMPLES)).astype(np.float32)
        self._noise = quantised(noise) if kind == "pcm" else noise
        self._kind = kind
        self.now = 0.0
        self.step_seconds = 0.004
        self.steps = 0
        self.after_step: Callable[[StepPlan], None] = lambda plan: None

    @property
    def kv_cache(self) -> KVCacheSize | None:
        return self._memory

    def step(self, plan: StepPlan) -> StepOutput:
        self.steps += 1
        self.now += self.step_seconds
        output = StepOutput()
        ids = [prefill.id for prefill in plan.prefills] + [decode.id for decode in plan.decodes]
        output.frames = {id: (self.steps * 7 + n) % 2_048 for n, id in enumerate(ids)}
        self._sound(plan, output)
        self.after_step(plan)
        return output

    def _sound(self, plan: StepPlan, output: StepOutput) -> None:
        groups: defaultdict[int, list[str]] = defaultdict(list)
        for run in plan.codec:
            groups[run.frames].append(run.id)
        for frames, ids in groups.items():
            samples = self._noise[: len(ids), : frames * FRAME_SAMPLES]
            if self._kind == "rows":
                output.samples.update(zip(ids, samples, strict=True))
            else:
                output.blocks.append(SoundBlock(ids, samples))


class Host:
    """One loop with `rows` utterances on air."""

    def __init__(self, rows: int, kind: str, pages: int | None) -> None:
        self.rows = rows
        self.engine = NullEngine(rows, kind, pages)
        config = SchedulerConfig(slots=rows, utilisation=1e6, kv_utilisation=1e6)
        self.scheduler = Scheduler(config, kv_cache=self.engine.kv_cache)
        self.recorder = Recorder()
        self.events = self.bytes = 0
        self.loop = EngineLoop(
            self.engine,
            self.scheduler,
            self._publish,
            observer=self.recorder,
            clock=lambda: self.engine.now,
        )
        for n in range(rows):
            self.loop.submit(Open(str(n), UtteranceSpec(layout="streaming")))
            self.loop.submit(Append(str(n), [1] * 400_000))

    def _publish(self, events: list[Event]) -> None:
        self.events += len(events)
        message = self.recorder.happened(events)
        assert message is not None, "the loop publishes no empty list"
        self.bytes += len(wire.encode(message))

    def run(self, done: Callable[[StepPlan], bool]) -> None:
        """Steps until `done` says so."""

        def after(plan: StepPlan) -> None:
            self._talk()
            if done(plan):
                self.loop._stopping = True

        self.loop._stopping = False
        self.engine.after_step = after
        # What `run` does at its end (failing all turns) is not part of a step.
        end_all, self.loop._end_all = self.loop._end_all, lambda *_: None  # type: ignore[method-assign]
        self.loop.run()
        self.loop._end_all = end_all  # type: ignore[method-assign]

    def _talk(self) -> None:
        """A token of text for a part of the rows."""
        share = max(1, round(self.rows * FRAME_SECONDS))
        first = self.engine.steps * share
        for n in range(first, first + share):
            self.loop.submit(Append(str(n % self.rows), [1]))

    def settle(self) -> None:
        """Until all rows speak and have their lead."""

        def settled(plan: StepPlan) -> bool:
            speaking = self.scheduler._requests.speaking.values()
            leads = [row.playback.lead(self.engine.now) for row in speaking]
            return len(leads) == self.rows and min(leads) > LEAD_SECONDS

        self.run(settled)
        self.engine.step_seconds = FRAME_SECONDS


def measure(
    rows: int, kind: str, steps: int, rounds: int, profile: str | None, pages_per_row: int | None
) -> dict[str, object]:
    """Figures of one number of rows."""
    host = Host(rows, kind, None if pages_per_row is None else rows * pages_per_row)
    host.settle()
    calm_garbage_collector()
    if profile is not None:
        _profile(host, steps, profile)
    watch = Stopwatch()
    loop = host.loop
    for name in ("_apply_commands", "_expire", "_measure_load"):
        watch.wrap(loop, name, "commands")
    watch.wrap(host.scheduler, "plan", "plan")
    for name in ("book", "learn"):
        watch.wrap(host.scheduler, name, "commit")
    watch.wrap(loop._watch, "reasons", "guards")
    watch.wrap(loop, "_book", "events")
    watch.wrap(loop, "_publish", "publish")
    watch.wrap(host.engine, "step", "engine")
    found: list[Counter[str]] = []
    host.events = host.bytes = planned = 0
    for _ in range(rounds):
        watch.spent.clear()
        last = host.engine.steps + steps

        def done(plan: StepPlan, last: int = last) -> bool:
            nonlocal planned
            planned += len(plan.decodes)
            return host.engine.steps >= last

        host.run(done)
        found.append(Counter(watch.spent))
    total = [sum(spent[stage] for stage in STAGES) for spent in found]
    per_step = steps * 1e6
    return {
        "rows": rows,
        "decoded": round(planned / steps / rounds, 1),
        "audio_events": round(host.events / steps / rounds, 1),
        "ms": round(median(total) / per_step, 3),
        "least_ms": round(min(total) / per_step, 3),
        **{s: round(min(spent[s] for spent in found) / per_step, 3) for s in STAGES},
    }


def _profile(host: Host, steps: int, path: str) -> None:
    profiler = cProfile.Profile()
    last = host.engine.steps + steps
    profiler.enable()
    host.run(lambda plan: host.engine.steps >= last)
    profiler.disable()
    with open(path, "w", encoding="utf-8") as out:
        pstats.Stats(profiler, stream=out).sort_stats("tottime").print_stats(40)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="1,64,256,512,1000")
    parser.add_argument("--steps", type=int, default=40, help="steps in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--sound",
        choices=("rows", "float", "pcm"),
        default="float",
        help="what the engine returns: an array a row, floats for many rows, PCM for many rows",
    )
    parser.add_argument("--profile", metavar="FILE")
    parser.add_argument(
        "--pages", type=int, metavar="N", help="pages of a KV cache, for each row (none: no limit)"
    )
    arguments = parser.parse_args()
    for rows in arguments.rows.split(","):
        figures = measure(
            int(rows),
            arguments.sound,
            arguments.steps,
            arguments.rounds,
            arguments.profile,
            arguments.pages,
        )
        sys.stdout.write(json.dumps(figures) + "\n")
        sys.stdout.flush()
        gc.unfreeze()


if __name__ == "__main__":
    main()
