"""A whole run: every level, on which machine, against which server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from realtime_tts.bench.load import Progress, run_level, run_unpaced
from realtime_tts.bench.machine import describe_machine
from realtime_tts.bench.prompts import PROMPTS
from realtime_tts.bench.result import DEFINITIONS, LevelResult, level_result
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.client import RealtimeTTS


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Everything a reader needs to judge the figures, and the figures."""

    began: str
    machine: dict[str, str | int]
    server: dict[str, Any]
    settings: dict[str, Any]
    levels: tuple[LevelResult, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return asdict(self) | {"definitions": DEFINITIONS}


async def run(settings: BenchSettings, levels: Sequence[Level], progress: Progress) -> BenchResult:
    """Measure every level, one after the other.

    Raises HandshakeRefused, OverloadedError or RequestError if no session can be opened; what
    happens to single turns is counted, not raised.
    """
    server = await _describe_server(settings)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    results = [await _measure(level, settings, progress) for level in levels]
    return BenchResult(began, describe_machine(), server, _shown(settings), tuple(results))


async def _measure(level: Level, settings: BenchSettings, progress: Progress) -> LevelResult:
    def within_level(what: str, done: int, total: int | None) -> None:
        progress(f"{level.name}: {what}", done, total)

    cpu, wall = time.process_time(), time.monotonic()
    paced = await run_level(level, settings, within_level)
    share = (time.process_time() - cpu) / (time.monotonic() - wall)
    unpaced = None
    if level.mode is Mode.CLOSED and settings.rtf_turns:
        unpaced = await run_unpaced(level, settings, within_level)
    return level_result(level, paced, unpaced, share)


async def _describe_server(settings: BenchSettings) -> dict[str, Any]:
    async with RealtimeTTS(settings.server, api_key=settings.api_key, **settings.options) as tts:
        ready = tts.ready
        return {
            "url": tts.url,
            "server": ready.server,
            "model": ready.model,
            "voice": ready.settings.voice,
            "lead_ms": ready.settings.lead_ms,
        }


def _shown(settings: BenchSettings) -> dict[str, Any]:
    shown = asdict(settings)
    del shown["api_key"], shown["server"]
    prompts = shown.pop("prompts")
    built_in = settings.prompts == PROMPTS
    return shown | {
        "prompts": {"built_in": built_in, "count": len(prompts), "chars": sum(map(len, prompts))}
    }
