"""A whole run: every level, on which machine, against which server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from realtime_tts.bench.gpu import gpus
from realtime_tts.bench.load import Progress, run_level, run_unpaced
from realtime_tts.bench.machine import describe_machine
from realtime_tts.bench.prompts import PROMPTS
from realtime_tts.bench.result import DEFINITIONS, LevelResult, level_result
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.sockets import SocketTarget
from realtime_tts.bench.steps import between, read_steps
from realtime_tts.bench.target import Target


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Everything a reader needs to judge the figures, and the figures."""

    began: str
    command: str
    machine: dict[str, str | int]
    server: dict[str, Any]
    settings: dict[str, Any]
    levels: tuple[LevelResult, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return asdict(self) | {"definitions": DEFINITIONS}


async def run(
    settings: BenchSettings,
    levels: Sequence[Level],
    progress: Progress,
    *,
    target: Target | None = None,
    command: str = "",
) -> BenchResult:
    """Measure every level, one after the other.

    `target`: what is measured, by default the server of the settings. `command`: what was typed.
    Raises HandshakeRefused, OverloadedError or RequestError if no session can be opened; what
    happens to single turns is counted, not raised.
    """
    target = SocketTarget(settings) if target is None else target
    server = await target.describe()
    began = datetime.now(UTC).isoformat(timespec="seconds")
    results = [await _measure(level, settings, target, progress) for level in levels]
    return BenchResult(began, command, describe_machine(), server, _shown(settings), tuple(results))


async def _measure(
    level: Level, settings: BenchSettings, target: Target, progress: Progress
) -> LevelResult:
    def within_level(what: str, done: int, total: int | None) -> None:
        progress(f"{level.name}: {what}", done, total)

    before = read_steps(await target.metrics())
    cpu, wall = time.process_time(), time.monotonic()
    paced = await run_level(level, settings, target, within_level)
    share = (time.process_time() - cpu) / (time.monotonic() - wall)
    steps = between(before, read_steps(await target.metrics()))
    unpaced = None
    if level.mode is not Mode.OPEN and settings.rtf_turns:
        unpaced = await run_unpaced(level, settings, target, within_level)
    found = await asyncio.to_thread(gpus) if target.local else ()
    memory = tuple(gpu.memory_mib for gpu in found)
    return level_result(level, paced, unpaced, share, steps, memory)


def _shown(settings: BenchSettings) -> dict[str, Any]:
    shown = asdict(settings)
    del shown["api_key"], shown["server"], shown["tls_ca"]
    prompts = shown.pop("prompts")
    built_in = settings.prompts == PROMPTS
    return shown | {
        "prompts": {"built_in": built_in, "count": len(prompts), "chars": sum(map(len, prompts))}
    }
