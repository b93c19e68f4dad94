"""A fake engine whose faults are told by the names of utterances, so that they reach a process."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import Progress, RowError, StepOutput, no_voice
from realtime_tts.errors import ConfigError
from tts_scheduler import StepPlan


@dataclass(slots=True)
class Faults:
    """Faults to inject; they may be set while the engine runs.

    `before_step` is called with every plan and may raise or sleep. `numerics`: ids of rows that
    fail alone. `runaway`: ids of rows that never end by themselves, and are silent once their text
    is spoken.
    """

    before_step: Callable[[StepPlan], None] | None = None
    numerics: set[str] = field(default_factory=set)
    runaway: set[str] = field(default_factory=set)


class FaultyEngine(FakeEngine):
    """A fake engine with these faults."""

    def __init__(
        self,
        config: FakeEngineConfig | None = None,
        faults: Faults | None = None,
        registered: Callable[[str], bool] = no_voice,
    ) -> None:
        super().__init__(config, registered)
        self.faults = faults or Faults()

    def step(self, plan: StepPlan) -> StepOutput:
        if self.faults.before_step is not None:
            self.faults.before_step(plan)
        return super().step(plan)

    def _is_over(self, id: str) -> bool:
        return id not in self.faults.runaway and super()._is_over(id)

    def _make_frame(self, id: str, output: StepOutput) -> None:
        if id in self.faults.numerics:
            output.failed[id] = RowError("numerics", "NaN logits (injected)")
        else:
            super()._make_frame(id, output)

    def _run_codec(self, id: str, frames: int, output: StepOutput) -> None:
        super()._run_codec(id, frames, output)
        row = self._rows[id]
        spoken = row.finished and row.frames > self.config.frames_per_token * row.tokens
        if spoken and id in self.faults.runaway and id in output.samples:
            output.samples[id] = np.zeros_like(output.samples[id])


@dataclass(frozen=True)
class Faulty:
    """Loads a FakeEngine. An utterance whose id begins with `segv`, `hang`, `raise`, `log` or
    `print` does that in its steps; `third` ends the process in the third one. `numerics` and
    `runaway` are Faults'. `once`: a file; the second load that finds it fails."""

    config: FakeEngineConfig = field(default_factory=lambda: FakeEngineConfig(step_seconds=0.002))
    once: Path | None = None
    refuse: str | None = None

    def __call__(self, progress: Progress) -> FakeEngine:
        progress("load", 1, 2)
        if self.refuse is not None:
            raise ConfigError(self.refuse)
        if self.once is not None:
            if self.once.exists():
                raise OSError("the device is gone (injected)")
            self.once.touch()
        faults = Faults(before_step, numerics={"numerics"}, runaway={"runaway"})
        return FaultyEngine(self.config, faults)


def files(folder: Path) -> list[Path]:
    """Everything in a folder, at any depth."""
    return list(folder.rglob("*"))


_steps = Counter[str]()


def before_step(plan: StepPlan) -> None:
    _steps.update(plan.ids)
    for id in plan.ids:
        match re.split("[-~]", id)[0]:
            case "segv":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "third" if _steps[id] == 3:
                os.kill(os.getpid(), signal.SIGSEGV)
            case "hang":
                time.sleep(1_000)
            case "raise":
                raise RuntimeError("device lost, injected")
            case "log":
                logging.getLogger("faulty").warning("said", extra={"fields": {"rows": 1}})
            case "print":
                sys.stdout.write("printed by a library\n")
                sys.stdout.flush()
