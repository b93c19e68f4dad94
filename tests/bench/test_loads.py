"""Bursts, ramps, interrupts and throughput, over real sockets with the fake engine."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from realtime_tts.bench.client_pool import (
    SESSIONS_PER_PROCESS,
    ClientPool,
    ClientProcessFailed,
    processes_for,
)
from realtime_tts.bench.deltas import DeltaKind, DeltaTiming
from realtime_tts.bench.load import Pass, carry_out
from realtime_tts.bench.local_server import local_server
from realtime_tts.bench.run import run
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.sockets import SocketTarget
from realtime_tts.client import SessionOptions
from tts_scheduler.report import Summary, TurnReport, summarise

WHOLE = DeltaTiming(DeltaKind.WHOLE)
LONG = "a long sentence that goes on and on, and then a little further still. " * 3


def silent(what: str, done: int, total: int | None) -> None:
    """Nobody watches the progress."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[str]:
    flags = ["--engine", "fake", "--step-seconds", "0.001", "--slots", "64", "--utilisation", "9"]
    async with local_server(flags) as url:
        yield url


def settings(server: str, **changes: Any) -> BenchSettings:
    plain: dict[str, Any] = {"timing": WHOLE, "warm_up": 0, "pause": 0.0, "rtf_turns": 0}
    plain["prompts"] = ("Hi.",)
    return BenchSettings(server=server, **(plain | changes))


@pytest.fixture
def no_underruns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels without the underruns of a slow machine, which would end a ramp, too."""

    def summary(reports: Iterable[TurnReport]) -> Summary:
        return replace(summarise(reports), underruns=0)

    monkeypatch.setattr("realtime_tts.bench.result.summarise", summary)


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_burst_begins_its_turns_together(server: str, processes: int) -> None:
    seen: list[tuple[int, int | None]] = []

    def progress(what: str, done: int, total: int | None) -> None:
        assert what == "burst 6: turns"
        seen.append((done, total))

    given = settings(server, turns=2, warm_up=1, client_processes=processes)
    (level,) = (await run(given, [Level(Mode.BURST, 6)], progress)).levels
    assert (level.turns, level.complete, level.failed) == (12, 12, 0)
    assert level.client_processes == processes
    assert level.start_lag_ms is not None and level.start_lag_ms.p50 >= 0
    assert level.client_lag_ms is not None
    assert max(seen)[0] == 12


async def test_the_last_byte_after_an_interrupt_is_timed(server: str) -> None:
    given = settings(
        server, turns=3, interrupts=1.0, cut_between=(0.0, 0.05), prompts=(LONG,), seed=2
    )
    (level,) = (await run(given, [Level(Mode.BURST, 4)], silent)).levels
    assert level.interrupted == level.interrupts_on_air == 12
    assert level.last_byte_ms is not None and level.interrupt_ms is not None
    assert 0 <= level.last_byte_ms.p50 <= level.last_byte_ms.max
    assert level.last_byte_ms.max <= level.interrupt_ms.max  # the answer comes after it
    assert level.last_byte_steps is not None and level.step_ms is not None


async def test_an_interrupt_of_a_turn_that_is_done_has_no_last_byte(server: str) -> None:
    given = settings(server, turns=1, interrupts=1.0, cut_between=(0.2, 0.2))
    (level,) = (await run(given, [Level(Mode.CLOSED, 2)], silent)).levels
    assert level.interrupt_ms is not None
    assert level.interrupts_on_air == 0 and level.last_byte_ms is None


async def test_an_unpaced_listener_never_makes_the_server_wait() -> None:
    flags = ["--engine", "fake", "--step-seconds", "0.0005", "--max-frames", "1250"]
    text = LONG * 12  # more than the hundred seconds that a turn may last here
    async with local_server(flags) as url:
        given = settings(url, turns=1, interrupts=1.0, cut_between=(0.0, 0.0), rtf_turns=1)
        level = (
            await run(given, [Level(Mode.CLOSED, 2, changes={"prompts": (text,)})], silent)
        ).levels[0]
    # 100 s of speech, of which the server may send 30 ahead: else this took 70 s.
    assert level.rtf is not None and level.rtf.max < 0.5
    assert level.capacity is not None and level.capacity > 2.0
    assert sum(step.steps for step in level.unpaced_steps) >= 1000


@pytest.mark.usefixtures("no_underruns")
async def test_a_ramp_ends_where_a_turn_fails_and_other_levels_are_measured() -> None:
    flags = ["--engine", "fake", "--slots", "4", "--max-queue", "0", "--max-frames", "25"]
    flags += ["--utilisation", "9"]  # slots alone say how many turns there is room for
    levels = [
        *(Level(Mode.CLOSED, number, climbs=True) for number in (2, 8, 16)),
        Level(Mode.BURST, 1),
    ]
    async with local_server(flags) as url:
        given = settings(url, turns=1, prompts=(LONG,), options=SessionOptions(lead_ms=200))
        result = await run(given, levels, silent)
    assert [level.level for level in result.levels] == ["2", "8", "1"]
    assert [level.sustained for level in result.levels] == [True, False, True]
    (note,) = result.notes
    assert note == "closed 8: 4 of 8 turns failed; the ramp ended here"


@pytest.mark.usefixtures("no_underruns")
async def test_a_ramp_ends_where_no_more_sessions_can_be_opened() -> None:
    flags = ["--engine", "fake", "--max-sessions", "3", "--step-seconds", "0.001"]
    levels = [Level(Mode.CLOSED, number, climbs=True) for number in (2, 6, 9)]
    levels += [Level(Mode.BURST, 7), Level(Mode.BURST, 1)]
    async with local_server(flags) as url:
        result = await run(settings(url, turns=1, client_processes=2), levels, silent)
    assert [level.level for level in result.levels] == ["2", "1"]
    assert [note.partition(": not measured: ")[0] for note in result.notes] == [
        "closed 6",
        "burst 7",
    ]
    assert result.missing == ("burst 7",)  # a ramp may end early, this may not


async def test_sessions_can_begin_one_after_the_other(server: str) -> None:
    slow = settings(server, turns=1, spread=0.4)
    given = Pass(Level(Mode.CLOSED, 4), slow, SocketTarget(slow), silent)
    seen = sorted(turn.trace.asked_at for turn in (await carry_out(given)).turns)
    assert seen[-1] - seen[0] >= 0.25  # 0.3 were asked for, and the first may have been late


async def test_the_open_loop_is_the_same_load_from_several_processes(server: str) -> None:
    given = settings(server, arrivals=12, client_processes=3, warm_up=1)
    (level,) = (await run(given, [Level(Mode.OPEN, rate=30.0)], silent)).levels
    assert (level.turns, level.failed, level.client_processes) == (12, 0, 3)
    assert 1 <= level.sessions <= 12


async def test_client_processes_that_cannot_go_on_say_why_and_are_replaced(server: str) -> None:
    nobody = settings("ws://127.0.0.1:1", turns=1, client_processes=2)
    async with ClientPool() as pool:
        with pytest.raises(ClientProcessFailed, match=r"127\.0\.0\.1:1"):
            await pool.carry_out(Level(Mode.CLOSED, 2), nobody, silent)
        given = settings(server, turns=1, client_processes=2)
        seen = await pool.carry_out(Level(Mode.CLOSED, 2), given, silent)
    assert len(seen.turns) == 2


def test_processes_follow_the_load_and_the_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.bench.client_pool.usable_cores", lambda: 16)
    plain = settings("ws://127.0.0.1:1")

    def count(sessions: int, given: BenchSettings = plain) -> int:
        return processes_for(Level(Mode.CLOSED, sessions), given)

    assert [count(n) for n in (1, SESSIONS_PER_PROCESS, SESSIONS_PER_PROCESS + 1)] == [1, 1, 2]
    assert count(10_000) == 8  # half of the cores: the server needs some, too
    assert count(4, settings("ws://127.0.0.1:1", client_processes=12)) == 4
    assert processes_for(Level(Mode.OPEN, rate=20.0), plain) == 4  # about 100 turns at once
