"""The engine as a target, without sockets."""

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.bench.deltas import DeltaKind, DeltaTiming
from realtime_tts.bench.in_process import engine_target
from realtime_tts.bench.run import run
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.workload import TurnPlan
from realtime_tts.cli import main
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import EngineError, RequestError
from tts_scheduler import SchedulerConfig

FAKE = EngineConfig(kind="fake", step_seconds=0.001)
PROMPTS = ("Hi.", "Yes.", "Sure.")


def silent(what: str, done: int, total: int | None) -> None:
    """Nobody watches the progress."""


async def measure(level: Level, **changes: Any) -> dict[str, Any]:
    settings = BenchSettings(
        server="", timing=DeltaTiming(tokens_per_second=500), pause=0.0, prompts=PROMPTS, **changes
    )
    async with engine_target(FAKE, {}) as target:
        result = (await run(settings, [level], silent, target=target)).as_dict()
    assert result["server"]["url"] == "in process" and result["server"]["model"] == "fake"
    (found,) = result["levels"]
    return dict(found)


async def test_the_closed_loop_needs_no_socket() -> None:
    level = await measure(Level(Mode.CLOSED, sessions=3), turns=2, rtf_turns=1)
    assert (level["turns"], level["complete"], level["failed"]) == (6, 6, 0)
    assert 0 < level["ttfa_raw_ms"]["p50"] <= level["ttfa_audible_ms"]["p50"]
    assert level["reasons"] == {"complete": 6}
    assert 0 < level["rtf"]["p50"] < 1
    assert {step["kind"] for step in level["steps"]} == {"decode", "prefill"}


async def test_the_open_loop_and_interrupts_work_as_well() -> None:
    level = await measure(Level(Mode.OPEN, rate=20.0), arrivals=10, interrupts=0.5, seed=3)
    assert level["turns"] == 10 and level["failed"] == 0
    assert 0 < level["interrupted"] < 10


async def test_the_same_speech_comes_out_as_over_a_socket() -> None:
    async with engine_target(FAKE, {}) as target, target.session() as speak:
        whole = await speak(TurnPlan(((0.0, "Hello there."),)))
        split = await speak(TurnPlan(((0.0, "Hel"), (0.01, "lo the"), (0.01, "re."))))
    samples = [sum(n for _, n in seen.trace.packets) for seen in (whole, split)]
    assert samples[0] == samples[1] > 0
    assert all(n <= 2048 for _, n in whole.trace.packets)  # 4,096 bytes
    assert whole.layout == "full_text"


async def test_a_turn_without_speech_ends_at_once() -> None:
    async with engine_target(FAKE, {}) as target, target.session() as speak:
        seen = await speak(TurnPlan(((0.0, " ... "),)))
    assert seen.error is None and not seen.trace.packets


async def test_turns_that_are_refused_for_lack_of_capacity_have_failed() -> None:
    full = replace(FAKE, scheduler=SchedulerConfig(slots=1, max_queue=0))
    async with engine_target(full, {}) as target, AsyncExitStack() as sessions:
        opened = [await sessions.enter_async_context(target.session()) for _ in range(3)]
        long, short = TurnPlan(((0.0, "One two three four. " * 5),)), TurnPlan(((0.0, "Hi."),))
        speaking = asyncio.ensure_future(opened[0](long))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(5):
            refused = [await opened[number](short) for number in (1, 2, 1, 2)]
        speaking.cancel()
    assert {seen.error for seen in refused} == {"overloaded"}
    assert all(seen.retry_after > 0 for seen in refused)


async def test_what_cannot_be_is_said_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="nobody"):
        async with engine_target(FAKE, {"voice": "nobody"}):
            pass
    with pytest.raises(EngineError, match="missing"):
        async with engine_target(EngineConfig(model=str(tmp_path)), {}):
            pass


def test_the_command_measures_random_weights_and_every_output_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("b.json", "b.md")]
    words = ["bench", "--in-process", "--max-frames 3 --slots 2", "--random-weights", "demo"]
    words += ["--sessions", "1", "--turns", "1", "--warm-up", "0", "--rtf-turns", "0"]
    words += ["--api-key", "s3cret", "--deltas", DeltaKind.WHOLE.value]
    for flag, path in zip(("--json", "--markdown"), files, strict=True):
        words += [flag, str(path)]
    assert main(words) == 0
    result = json.loads(files[0].read_text())
    assert result["server"]["random_weights"] is True
    assert result["levels"][0]["audio_seconds"] == 0.24  # three frames
    assert result["levels"][0]["reasons"] == {"max_length": 1}
    assert "s3cret" not in files[0].read_text() and "--api-key ***" in result["command"]
    assert "RANDOM WEIGHTS" in files[1].read_text()
    assert "RANDOM WEIGHTS" in capsys.readouterr().out
