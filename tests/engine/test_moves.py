"""When a turn leaves an engine that still lives: the decision, and listeners in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from realtime_tts.engine.link import EngineStatus, Why
from realtime_tts.engine.moves import Load, is_due, stranded


def load(turns: int, capacity: int = 8, **state: object) -> Load:
    return Load(EngineStatus(True, turns, 0, 0, capacity, 0.0, **state), turns)  # type: ignore[arg-type]


def test_turns_leave_a_silent_engine_for_the_room_that_others_have() -> None:
    silent, free = load(5, silence=0.3, step=0.02), load(2)
    assert stranded([silent, free]) == [(0, Why.SILENT, 6)]
    assert stranded([silent, load(8)]) == [], "nobody has room"
    assert stranded([silent]) == [], "there is nobody else"
    assert stranded([silent, load(3, others=3)]) == [(0, Why.SILENT, 2)]


def test_neither_a_silent_nor_a_leaving_engine_takes_turns() -> None:
    silent = load(5, silence=0.3)
    assert stranded([silent, load(0, silence=9.0)]) == []
    assert stranded([silent, load(0, leaving=True)]) == []
    restarting = Load(EngineStatus(False, 0, 0, 0, 8, 0.0), 0)
    assert stranded([silent, restarting]) == []


def test_an_engine_with_long_steps_is_silent_after_as_many_of_them() -> None:
    """A start on a GPU, or any step on a small CPU: the next one may take as long."""
    assert stranded([load(1, silence=0.5, step=0.2), load(0)]) == []
    assert stranded([load(1, silence=0.7, step=0.2), load(0)]) == [(0, Why.SILENT, 8)]


def test_a_crowded_engine_gives_up_what_it_has_too_many_of() -> None:
    assert stranded([load(8), load(0)]) == []
    assert stranded([load(11), load(0)]) == [(0, Why.CROWDED, 3)]
    assert stranded([load(11), load(7)]) == [(0, Why.CROWDED, 1)]
    assert stranded([load(11), load(9)]) == [], "both are"
    shared = load(5, others=7)  # four too many, five twelfths of which are ours
    assert stranded([shared, load(0)]) == [(0, Why.CROWDED, 2)]


def test_only_a_listener_that_is_about_to_run_dry_moves() -> None:
    def due(why: Why = Why.SILENT, **changed: object) -> bool:
        usual = {"lead": 0.5, "waits": False, "age": 0.2, "moved": False}
        return is_due(why, **(usual | changed))  # type: ignore[arg-type]

    assert due() and not due(lead=2.0)
    assert not due(waits=True), "nothing is due from it"
    assert not due(moved=True) and due(moved=True, age=1.5), "it does not go to and fro"
    assert not due(Why.CROWDED), "it has just begun"
    assert due(Why.CROWDED, age=6.0) and not due(Why.CROWDED, age=6.0, lead=1.0)
    assert due(Why.LEAVING, lead=30.0, waits=True, moved=True)


@dataclass
class Engine:
    """Steps of `step` seconds, but for those that begin when `stalls(now)` seconds are to pass."""

    step: float
    stalls: Callable[[float], float]
    busy_until: float = 0.0
    heard_at: float = 0.0
    longest: float = 0.0
    took: float = 0.0
    turns: list[Turn] = field(default_factory=list)

    def run(self, now: float) -> None:
        if now < self.busy_until:
            return
        self.heard_at, self.longest = now, max(self.took, 0.95 * self.longest)
        for turn in self.turns:
            if turn.lead(now) < 3.0:
                turn.runs_dry_at = max(now, turn.runs_dry_at) + 0.08
        self.took = self.step + self.stalls(now)
        self.busy_until = now + self.took

    def load(self, now: float) -> Load:
        silence, turns = now - self.heard_at, len(self.turns)
        return Load(
            EngineStatus(True, turns, 0, 0, 8, 0.0, silence=silence, step=self.longest), turns
        )


@dataclass
class Turn:
    """A listener that begins with a second of sound."""

    runs_dry_at: float
    opened_at: float = 0.0
    moves: int = 0
    dry: float = 0.0

    def lead(self, now: float) -> float:
        return self.runs_dry_at - now


def simulated(engines: list[Engine], seconds: float) -> list[Turn]:
    """Four turns on the first engine, one on the second; what became of them."""
    turns = [Turn(1.0) for _ in range(5)]
    engines[0].turns, engines[1].turns = turns[:4], turns[4:]
    for tick in range(round(seconds / 0.01)):
        now = tick * 0.01
        for engine in engines:
            engine.run(now)
        for turn in turns:
            turn.dry = max(turn.dry, -turn.lead(now))
        if tick % 5 == 0:
            move(engines, now)
    return turns


def move(engines: list[Engine], now: float) -> None:
    for number, why, room in stranded([engine.load(now) for engine in engines]):
        here, there = engines[number], engines[1 - number]
        due = [
            turn
            for turn in here.turns
            if is_due(
                why,
                lead=turn.lead(now),
                waits=False,
                age=now - turn.opened_at,
                moved=turn.moves > 0,
            )
        ]
        for turn in due[:room]:
            here.turns.remove(turn)
            there.turns.append(turn)
            turn.moves, turn.opened_at = turn.moves + 1, now


def steady(now: float) -> float:
    return 0.0


@pytest.mark.parametrize("at", [0.0, 0.2, 0.7, 1.3, 2.0, 5.0, 5.5])
@pytest.mark.parametrize("step", [0.005, 0.03, 0.08])
def test_an_engine_that_hangs_costs_no_listener_with_a_second_of_lead_a_gap(
    at: float, step: float
) -> None:
    hangs = Engine(step, lambda now: 100.0 if now >= at else 0.0)
    turns = simulated([hangs, Engine(step, steady)], 12.0)
    assert max(turn.dry for turn in turns) <= 0.0
    assert [turn.moves for turn in turns] == [1, 1, 1, 1, 0]


@pytest.mark.parametrize("stall", [0.15, 0.4, 1.0])
def test_an_engine_that_is_late_now_and_then_keeps_its_turns(stall: float) -> None:
    """A start on a GPU, stolen time, a garbage collection: leads cover those."""
    late = Engine(0.02, lambda now: stall if now % 3.0 < 0.03 and now > 2.5 else 0.0)
    turns = simulated([late, Engine(0.02, steady)], 30.0)
    assert [turn.moves for turn in turns] == [0] * 5
    assert max(turn.dry for turn in turns) <= 0.0


def test_two_engines_that_stall_in_turns_do_not_toss_a_turn_to_and_fro() -> None:
    """Each stands still for half of the time, when the other one moves. Their steps are known to
    take so long, and nobody can be in time."""

    def stalls(begins: float) -> Callable[[float], float]:
        return lambda now: 0.4 if (now - begins) % 0.8 < 0.06 else 0.0

    turns = simulated([Engine(0.05, stalls(0.0)), Engine(0.05, stalls(0.4))], 30.0)
    assert max(turn.dry for turn in turns) > 0.0
    assert max(turn.moves for turn in turns) <= 2
