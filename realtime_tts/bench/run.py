"""A whole run: every level, on which machine, against which server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from realtime_tts.bench.client_pool import ClientPool
from realtime_tts.bench.load import Pass, carry_out
from realtime_tts.bench.machine import describe_machine, gpus
from realtime_tts.bench.observation import Observed
from realtime_tts.bench.prompts import PROMPTS
from realtime_tts.bench.result import (
    DEFINITIONS,
    LevelResult,
    StepTimes,
    between,
    level_result,
    read_steps,
)
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.sockets import SocketTarget
from realtime_tts.bench.workload import Progress, Target
from realtime_tts.errors import RealtimeTTSError


@dataclass(frozen=True, slots=True)
class BenchResult:
    """The figures of a run, with everything a reader needs to judge them."""

    began: str
    command: str
    machine: dict[str, str | int]
    server: dict[str, Any]
    settings: dict[str, Any]
    levels: tuple[LevelResult, ...]
    notes: tuple[str, ...] = ()
    """Sentences that say where a ramp ended, and why; and which levels could not be measured."""
    missing: tuple[str, ...] = ()
    """Levels that should have been measured and could not: the result is incomplete."""

    def as_dict(self) -> dict[str, Any]:
        """Return the result in plain types, for JSON."""
        return asdict(self) | {"definitions": DEFINITIONS}


async def run(
    settings: BenchSettings,
    levels: Sequence[Level],
    progress: Progress,
    *,
    target: Target | None = None,
    command: str = "",
    on_level: Callable[[BenchResult], None] = lambda result: None,
) -> BenchResult:
    """Measure every level, one after the other.

    `target`: what is measured, by default the server of the settings. `command`: the command line.
    `on_level` is called with the result so far after each level. Raises HandshakeRefused,
    OverloadedError or RequestError if no session can be opened, and ClientProcessFailed if fewer
    than the first level needs; a later level that cannot be measured does not undo the ones before
    it. Errors of single turns are counted, not raised.
    """
    here = target is not None
    target = SocketTarget(settings) if target is None else target
    server = await target.describe()
    began = datetime.now(UTC).isoformat(timespec="seconds")
    so_far = partial(BenchResult, began, command, describe_machine(), server, _shown(settings))
    results: list[LevelResult] = []
    notes: list[str] = []
    missing: list[str] = []
    ramp_ended = False
    async with ClientPool() as pool:
        for level in levels:
            if level.climbs and ramp_ended:
                continue
            own = replace(settings, **level.changes)
            try:
                measuring = _Measuring(level, own, target, progress, None if here else pool)
                results.append(await measuring.run())
            except RealtimeTTSError as error:
                if not results:
                    raise
                notes.append(f"{level.title}: not measured: {error}")
                missing += [] if level.climbs else [level.title]
                ramp_ended |= level.climbs
                continue
            if not results[-1].turns:
                notes.append(f"{level.title}: no turn began in its time: give it more --seconds")
                missing.append(level.title)
            if level.climbs and not results[-1].sustained:
                notes.append(f"{level.title}: {_why_not(results[-1])}; the ramp ended here")
                ramp_ended = True
            on_level(so_far(tuple(results), tuple(notes), tuple(missing)))
    return so_far(tuple(results), tuple(notes), tuple(missing))


@dataclass(frozen=True, slots=True)
class _Measuring:
    level: Level
    settings: BenchSettings
    target: Target
    progress: Progress
    pool: ClientPool | None
    """The client processes; None: the load runs in this process, because the target does."""

    async def run(self) -> LevelResult:
        paced, steps = await self._pass(paced=True)
        unpaced: Observed | None = None
        unpaced_steps: tuple[StepTimes, ...] = ()
        if self.level.mode is not Mode.OPEN and self.settings.rtf_turns:
            unpaced, unpaced_steps = await self._pass(paced=False)
        found = await asyncio.to_thread(gpus) if self.target.local else ()
        memory = tuple(gpu.memory_mib for gpu in found)
        return level_result(self.level, paced, unpaced, steps, unpaced_steps, memory)

    async def _pass(self, *, paced: bool) -> tuple[Observed, tuple[StepTimes, ...]]:
        before = read_steps(await self.target.metrics())
        level, settings, progress = self.level, self.settings, self._progress
        if self.pool is None:
            seen = await carry_out(Pass(level, settings, self.target, progress, paced))
        else:
            seen = await self.pool.carry_out(level, settings, progress, paced=paced)
        return seen, between(before, read_steps(await self.target.metrics()))

    def _progress(self, what: str, done: int, total: int | None) -> None:
        self.progress(f"{self.level.title}: {what}", done, total)


def _why_not(result: LevelResult) -> str:
    failed = f"{result.failed} of {result.turns} turns failed" if result.failed else ""
    late = f"{result.underruns} underruns" if result.underruns else ""
    return ", ".join(part for part in (late, failed) if part) or "turns without sound"


def _shown(settings: BenchSettings) -> dict[str, Any]:
    shown = asdict(settings)
    del shown["api_key"], shown["server"], shown["tls_ca"]
    prompts = shown.pop("prompts")
    built_in = settings.prompts == PROMPTS
    return shown | {
        "prompts": {"built_in": built_in, "count": len(prompts), "chars": sum(map(len, prompts))}
    }
