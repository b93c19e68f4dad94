"""Small runs against a server with the fake engine, in a process of its own."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from realtime_tts.bench.deltas import DeltaKind, DeltaTiming
from realtime_tts.bench.local_server import ServerDidNotStart, http_status, local_server
from realtime_tts.bench.machine import hardware
from realtime_tts.bench.run import run
from realtime_tts.bench.settings import AgentSettings, BenchSettings, Level, Mode
from realtime_tts.bench.sockets import SocketTarget, speak
from realtime_tts.cli import main
from realtime_tts.cli.failures import ExitStatus
from realtime_tts.errors import RequestError
from tests.waiting import SECONDS

PROMPTS = ("Hi.", "Yes.", "Sure.")


def silent(what: str, done: int, total: int | None) -> None:
    """Nobody watches the progress."""


def check(level: dict[str, Any]) -> None:
    """What holds for every level, whatever the machine."""
    assert level["turns"] == level["complete"] + level["interrupted"] + level["failed"]
    assert sum(level["errors"].values()) == level["failed"]
    assert sum(level["reasons"].values()) == level["complete"] + level["interrupted"]
    for name in ("ttfa_raw_ms", "ttfa_audible_ms", "ttfa_server_ms", "held_ms", "rtf"):
        spread = level[name]
        if spread is not None:
            assert 0 <= spread["p50"] <= spread["p95"] <= spread["p99"], name
    assert level["ttfa_audible_ms"]["p50"] >= level["ttfa_raw_ms"]["p50"]
    assert 0 <= level["viability"] <= 1
    assert (level["underruns"] == 0) == (level["viable_turns"] == 1.0)
    assert (level["underruns"] == 0) == (level["worst_gap_ms"] == 0.0)
    assert level["audio_seconds"] > 0
    assert 0 <= level["client_cpu"] < 1


def test_a_run_that_is_stopped_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stopped(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(SECONDS)

    monkeypatch.setattr("realtime_tts.cli.bench.run_bench", stopped)
    assert main(["bench", "--start", "--engine fake"]) == ExitStatus.INTERRUPTED


def test_a_server_is_started_or_there_already(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--start", "--engine fake", "--url", "ws://127.0.0.1:8000"])
    assert "not allowed with argument --start" in capsys.readouterr().err


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command writes, from one run for several tests."""
    folder = tmp_path_factory.mktemp("bench")
    prompts = folder / "prompts.txt"
    prompts.write_text("\n".join(PROMPTS) + "\n\n", encoding="utf-8")
    words = ["bench", "--start", "--engine fake --step-seconds 0.001", "--sessions", "1,3"]
    words += ["--turns", "2", "--warm-up", "1", "--pause", "0", "--prompts", str(prompts)]
    words += ["--tokens-per-second", "500", "--rtf-turns", "1", "--json", str(folder / "b.json")]
    words += ["--markdown", str(folder / "b.md"), "--png", str(folder / "b.png")]
    assert main(words) == 0
    written: dict[str, Any] = json.loads((folder / "b.json").read_text(encoding="utf-8"))
    written["markdown"] = (folder / "b.md").read_text(encoding="utf-8")
    written["png"] = (folder / "b.png").read_bytes()
    return written


def test_every_turn_of_every_level_is_in_the_figures(report: dict[str, Any]) -> None:
    assert [level["level"] for level in report["levels"]] == ["1", "3"]
    assert [level["turns"] for level in report["levels"]] == [2, 6]
    for level in report["levels"]:
        check(level)
        assert level["complete"] == level["turns"]
        assert level["interrupt_ms"] is None


def test_the_server_tells_its_step_times_by_rows(report: dict[str, Any]) -> None:
    for level in report["levels"]:
        assert {step["kind"] for step in level["steps"]} == {"decode", "prefill"}
        assert all(step["steps"] > 0 and step["mean_ms"] > 0 for step in level["steps"])
        assert max(step["rows"] for step in level["steps"]) <= 4


def test_the_unpaced_pass_measures_speed(report: dict[str, Any]) -> None:
    for level in report["levels"]:
        assert 0 < level["rtf"]["p50"] < 1  # a fake engine is faster than speech
        assert level["capacity"] > 1


def test_a_result_says_where_it_comes_from(report: dict[str, Any]) -> None:
    assert report["server"]["model"] == "fake"
    assert report["machine"]["cores"] >= 1
    assert report["machine"]["cpu"]
    assert report["settings"]["timing"]["tokens_per_second"] == 500
    assert report["settings"]["prompts"] == {
        "built_in": False,
        "count": 3,
        "chars": sum(map(len, PROMPTS)),
    }
    assert "api_key" not in json.dumps(report["settings"])
    assert report["command"].startswith("realtime-tts bench --start '--engine fake")
    assert report["server"]["random_weights"] is False
    assert set(report["definitions"]) <= set(report["levels"][0])


def test_the_table_and_the_picture_show_the_levels(report: dict[str, Any]) -> None:
    lines = report["markdown"].splitlines()
    assert lines[0].startswith("| sessions | turns | layout | TTFA ms |")
    assert [line.split(" | ")[0] for line in lines[2:4]] == ["| 1", "| 3"]
    assert hardware(report["machine"]) in report["markdown"] and "seed 0" in report["markdown"]
    assert any(line.startswith("| decode only | ") for line in lines)
    assert report["png"].startswith(b"\x89PNG")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[str]:
    async with local_server(["--engine", "fake", "--step-seconds", "0.001"]) as url:
        yield url


async def test_an_open_loop_with_interrupts_counts_them_apart(server: str) -> None:
    settings = BenchSettings(
        server=server,
        timing=DeltaTiming(DeltaKind.WORDS, tokens_per_second=200),
        seconds=2.0,
        warm_up=0,
        interrupts=0.5,
        seed=3,
        prompts=PROMPTS,
    )
    result = await run(settings, [Level(Mode.OPEN, rate=6.0)], silent)
    (level,) = result.as_dict()["levels"]
    check(level)
    assert 4 <= level["turns"] <= 24
    assert level["interrupted"] > 0
    assert level["failed"] == 0
    assert level["interrupt_ms"]["p50"] < 1000
    assert level["sessions"] >= 1
    assert level["rtf"] is None


async def test_the_open_loop_takes_a_number_of_arrivals_and_tells_its_own_lateness(
    server: str,
) -> None:
    settings = BenchSettings(server=server, arrivals=10, prompts=PROMPTS)
    result = await run(settings, [Level(Mode.OPEN, rate=20.0)], silent)
    (level,) = result.as_dict()["levels"]
    check(level)
    assert level["turns"] == 10  # one more, the warm-up, does not count
    assert 0 <= level["start_lag_ms"]["p50"] <= level["start_lag_ms"]["p99"]


async def test_a_level_in_which_no_turn_began_is_incomplete(server: str) -> None:
    settings = BenchSettings(server=server, seconds=0.1, warm_up=0, prompts=PROMPTS)
    result = await run(settings, [Level(Mode.OPEN, rate=0.01)], silent)
    assert result.missing == ("0.01/s",) and "no turn began" in result.notes[0]


async def test_a_slow_answer_does_not_hold_the_next_arrival_back() -> None:
    slow = ["--engine", "fake", "--step-seconds", "0.05", "--utilisation", "9"]
    async with local_server(slow) as url:
        settings = BenchSettings(server=url, arrivals=8, warm_up=0, prompts=("Hi.",))
        (level,) = (await run(settings, [Level(Mode.OPEN, rate=50.0)], silent)).levels
    assert level.turns == 8 and level.sessions == 8  # all of them at once


async def test_agents_think_stall_and_interrupt(server: str) -> None:
    agents = AgentSettings(think_seconds=0.01, slowest=200, fastest=800, interrupts=0.5)
    settings = BenchSettings(
        server=server, turns=4, rtf_turns=0, prompts=PROMPTS, agents=agents, seed=1
    )
    (level,) = (await run(settings, [Level(Mode.AGENTS, sessions=3)], silent)).as_dict()["levels"]
    check(level)
    assert level["turns"] == 12 and level["failed"] == 0
    assert 0 < level["interrupted"] < 12


async def test_a_turn_cut_off_on_air_has_the_servers_result(server: str) -> None:
    async with SocketTarget(BenchSettings(server=server)).client() as tts:
        seen = await speak(tts, [(0.0, "This is much to hear. " * 40)], cut_after=0.05)
    assert seen.last_byte_seconds is not None  # it was on air
    assert seen.result is not None and seen.result.reason == "interrupted"


async def test_whole_texts_use_the_full_text_layout_and_repeat_with_a_seed(server: str) -> None:
    settings = BenchSettings(
        server=server,
        timing=DeltaTiming(DeltaKind.WHOLE),
        turns=1,
        warm_up=0,
        pause=0.0,
        rtf_turns=0,
        seed=5,
        prompts=PROMPTS,
    )
    levels = [Level(Mode.CLOSED, sessions=1)] * 2
    first, second = (await run(settings, levels, silent)).levels
    assert first.layouts == {"full_text": 1}
    assert first.audio_seconds == second.audio_seconds
    assert first.held_ms is not None and first.held_ms.p99 == 0.0


async def test_a_run_that_cannot_begin_is_an_error(server: str) -> None:
    settings = BenchSettings(server=server, options={"voice": "nobody"})
    with pytest.raises(RequestError, match="nobody"):
        await run(settings, [Level(Mode.CLOSED, sessions=1)], silent)


async def test_a_server_that_does_not_start_shows_its_last_words() -> None:
    with pytest.raises(ServerDidNotStart, match="--no-such-flag"):
        async with local_server(["--no-such-flag"]):
            pass


async def test_a_started_server_is_gone_afterwards() -> None:
    async with local_server(["--engine", "fake"]) as url:
        port = int(url.rpartition(":")[2])
        assert await asyncio.to_thread(http_status, port, "/readyz") == 200
    assert await asyncio.to_thread(http_status, port, "/readyz") is None


def test_prompts_without_text_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    assert main(["bench", "--prompts", str(empty)]) == 2
    assert "nothing to speak" in capsys.readouterr().err
    assert main(["bench", "--prompts", str(tmp_path / "missing.txt")]) == 2


async def test_a_run_that_is_stopped_has_written_its_levels_and_leaves_no_server(
    tmp_path: Path,
) -> None:
    written = tmp_path / "levels.json"
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(PROMPTS), encoding="utf-8")
    words = ["--start", "--engine fake --slots 4", "--sessions", "1,2", "--turns", "1"]
    words += ["--warm-up", "0", "--prompts", str(prompts)]
    bench = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "realtime_tts",
        "bench",
        *words,
        "--json",
        str(written),
        "--rtf-turns",
        "0",
        stderr=asyncio.subprocess.PIPE,
    )
    assert bench.stderr is not None
    while b"closed 1: " not in (line := await bench.stderr.readline()):
        assert line, "the run ended before its first level"
    servers = psutil.Process(bench.pid).children(recursive=True)
    assert servers
    bench.terminate()
    assert await bench.wait() != 0
    assert not psutil.wait_procs(servers, timeout=60)[1]
    assert [level["level"] for level in json.loads(written.read_text())["levels"]] == ["1"]
