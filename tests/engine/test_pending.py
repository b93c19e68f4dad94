"""Which commands an engine loop applies before its next step."""

from __future__ import annotations

import queue
from collections.abc import Sequence

import pytest

from realtime_tts.engine import pending
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import Command, Finish, Open
from realtime_tts.engine.pending import BURST, BURST_PAUSE, BURST_SECONDS, PendingCommands


class Clock:
    """The module's clock, which only a wait moves on."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


class Source:
    """Commands that come at known times."""

    def __init__(self, clock: Clock, groups: Sequence[tuple[float, Command]]) -> None:
        self._clock, self._groups = clock, list(groups)

    def put(self, commands: Sequence[Command], /) -> None:
        raise AssertionError("all commands are there")

    def get(self, *, timeout: float) -> Sequence[Command]:
        self._clock.now += timeout
        if not self._groups or self._groups[0][0] > self._clock.now:
            raise queue.Empty
        at, command = self._groups.pop(0)
        self._clock.now = max(self._clock.now - timeout, at)
        return [command]

    def get_nowait(self) -> Sequence[Command]:
        return self.get(timeout=0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pending, "time", clock)
    return clock


def opens(clock: Clock, number: int) -> list[tuple[float, Command]]:
    spec = UtteranceSpec(voice="ava", language="english", seed=1)
    return [(clock.now, Open(str(n), spec)) for n in range(number)]


def ids(commands: PendingCommands) -> list[str]:
    return [command.id for command in commands]


def test_an_idle_engine_gets_all_of_a_burst_before_its_first_step(clock: Clock) -> None:
    came = opens(clock, BURST) + [
        (clock.now + 0.8 * BURST_PAUSE * n, Finish(f"{n}")) for n in (1, 2, 3)
    ]
    commands = PendingCommands(Source(clock, came))
    commands.wait(0.5)
    assert ids(commands) == ["0", "1", "2", "3", "1", "2", "3"]


def test_few_starts_wait_for_nothing(clock: Clock) -> None:
    began = clock.now
    commands = PendingCommands(Source(clock, opens(clock, BURST - 1)))
    commands.wait(0.5)
    assert len(ids(commands)) == BURST - 1
    assert clock.now == began


def test_between_two_steps_nothing_is_waited_for(clock: Clock) -> None:
    began = clock.now
    commands = PendingCommands(Source(clock, opens(clock, 2 * BURST)))
    commands.wait(0.5)
    assert len(ids(commands)) == 2 * BURST
    waited = clock.now - began
    assert waited == pytest.approx(BURST_PAUSE)  # for more of the burst
    commands = PendingCommands(Source(clock, opens(clock, 2 * BURST)))
    assert len(ids(commands)) == 2 * BURST
    assert clock.now - began == waited


def test_a_burst_that_does_not_end_is_left_in_time(clock: Clock) -> None:
    began = clock.now
    more = [(began + 0.5 * BURST_PAUSE * n, Finish(str(n))) for n in range(1_000)]
    commands = PendingCommands(Source(clock, [*opens(clock, BURST), *more]))
    commands.wait(0.5)
    first = ids(commands)[BURST:]
    assert clock.now - began == pytest.approx(BURST_SECONDS)
    assert first == [str(n) for n in range(len(first))]
    assert len(first) == pytest.approx(BURST_SECONDS / (0.5 * BURST_PAUSE), abs=1)
    assert ids(commands) == []  # and then, between steps, only what is there
