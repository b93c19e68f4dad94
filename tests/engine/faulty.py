"""A fake engine whose faults are told by the names of utterances, so that they reach a process."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig, Faults
from realtime_tts.engine.interface import Progress
from realtime_tts.errors import ConfigError
from tts_scheduler import StepPlan


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
        return FakeEngine(self.config, faults)


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
