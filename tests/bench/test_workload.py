"""Loads are pure: a seed gives the same texts, times and interrupts, whoever carries them out."""

from itertools import islice
from math import isclose, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.bench.prompts import PROMPTS
from realtime_tts.bench.settings import AgentSettings, BenchSettings, Mode
from realtime_tts.bench.workload import Arrival, TurnPlan, arrivals, session_turns
from realtime_tts.errors import ConfigError

SEEDS = st.integers(0, 2**32)
SESSION_MODES = st.sampled_from([Mode.CLOSED, Mode.AGENTS])


def settings(**changes: Any) -> BenchSettings:
    return BenchSettings(server="ws://127.0.0.1:1", **changes)


def turns(given: BenchSettings, mode: Mode, session: int = 0, count: int = 20) -> list[TurnPlan]:
    return list(islice(session_turns(given, mode, session), count))


@given(seed=SEEDS, mode=SESSION_MODES, session=st.integers(0, 1000))
def test_a_seed_repeats_a_session_and_another_one_does_not(
    seed: int, mode: Mode, session: int
) -> None:
    load = settings(seed=seed, interrupts=0.5)
    assert turns(load, mode, session) == turns(load, mode, session)
    assert turns(load, mode, session) != turns(load, mode, session + 1)
    assert turns(load, mode, session) != turns(settings(seed=seed + 1, interrupts=0.5), mode)


@given(seed=SEEDS, mode=SESSION_MODES)
def test_every_round_speaks_every_prompt_once(seed: int, mode: Mode) -> None:
    spoken = turns(settings(seed=seed), mode, count=len(PROMPTS))
    assert sorted(turn.text for turn in spoken) == sorted(PROMPTS)


@given(seed=SEEDS, count=st.integers(1, 60), warm_up=st.integers(0, 1))
def test_so_many_arrivals_count_as_were_asked_for(seed: int, count: int, warm_up: int) -> None:
    found = list(arrivals(settings(seed=seed, arrivals=count, warm_up=warm_up), 3.0))
    assert sum(arrival.counts for arrival in found) == count
    assert [a.at for a in found] == sorted(a.at for a in found)
    counted = [arrival.counts for arrival in found]
    assert counted == sorted(counted)  # warm-up first, then all the rest


@given(seed=SEEDS, seconds=st.floats(10, 100), rate=st.floats(0.1, 10))
def test_arrivals_end_with_the_time_and_the_first_tenth_does_not_count(
    seed: int, seconds: float, rate: float
) -> None:
    found = list(arrivals(settings(seed=seed, seconds=seconds), rate))
    warm = round(0.1 * seconds)
    assert all(0 < arrival.at < seconds + warm for arrival in found)
    assert all(arrival.counts == (arrival.at >= warm) for arrival in found)


@given(seed=SEEDS)
def test_a_faster_rate_brings_the_same_turns_closer_together(seed: int) -> None:
    load = settings(seed=seed, arrivals=20)
    slow, fast = list(arrivals(load, 1.0)), list(arrivals(load, 4.0))
    assert [a.turn for a in slow] == [a.turn for a in fast]
    assert all(isclose(a.at, 4 * b.at) for a, b in zip(slow, fast, strict=True))


def test_arrivals_are_a_poisson_process() -> None:
    found = list(arrivals(settings(arrivals=4000, warm_up=0), 5.0))
    gaps = [b.at - a.at for a, b in zip(found, found[1:], strict=False)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(0.2, rel=0.05)
    assert deviation == pytest.approx(mean, rel=0.05)  # exponential gaps


def test_the_pause_is_a_mean_and_interrupts_are_a_share() -> None:
    load = settings(pause=0.4, interrupts=0.25)
    found = turns(load, Mode.CLOSED, count=2000)
    assert sum(turn.pause for turn in found) / 2000 == pytest.approx(0.4, rel=0.1)
    cut = [turn.cut_after for turn in found if turn.cut_after is not None]
    assert len(cut) / 2000 == pytest.approx(0.25, abs=0.04)
    assert 0.2 <= min(cut) and max(cut) <= 2.0


def test_agents_have_a_pace_of_their_own_for_every_answer() -> None:
    agents = AgentSettings(think_seconds=2.0, slowest=10, fastest=100, stalls=0.0)
    found = turns(settings(agents=agents, prompts=(PROMPTS[-1],)), Mode.AGENTS, count=300)
    paces = [(len(turn.deltas) - 1) / sum(gap for gap, _ in turn.deltas) for turn in found]
    assert 7 < min(paces) < 15 and 70 < max(paces) < 140
    assert sum(turn.pause for turn in found) / 300 == pytest.approx(2.0, rel=0.2)


def test_agents_stall_and_are_cut_off_anywhere() -> None:
    agents = AgentSettings(slowest=50, fastest=50, stalls=0.1, interrupts=0.5)
    found = turns(settings(agents=agents, prompts=(PROMPTS[-1],)), Mode.AGENTS, count=400)
    gaps = [gap for turn in found for gap, _ in turn.deltas[1:]]
    assert sum(gap > 0.5 for gap in gaps) / len(gaps) == pytest.approx(0.1, abs=0.02)
    cut = [turn.cut_after for turn in found if turn.cut_after is not None]
    assert len(cut) / 400 == pytest.approx(0.5, abs=0.08)
    assert min(cut) < 1.0 and max(cut) > len(PROMPTS[-1]) / 14 - 1.0


def test_an_arrival_is_a_turn_at_a_time() -> None:
    first = next(arrivals(settings(arrivals=1, warm_up=0), 1.0))
    assert isinstance(first, Arrival) and first.counts and first.turn.text in PROMPTS


@pytest.mark.parametrize(
    "bad",
    [
        {"think_seconds": -1.0},
        {"think_seconds": nan},
        {"slowest": 0.0},
        {"slowest": 9.0, "fastest": 8.0},
        {"stalls": 2.0},
        {"interrupts": -0.1},
    ],
    ids=str,
)
def test_agents_that_cannot_be_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        AgentSettings(**bad)
