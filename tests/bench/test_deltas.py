from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.bench.deltas import DeltaKind, DeltaTiming, schedule, split
from realtime_tts.errors import ConfigError

TEXT = "The lighthouse, extraordinarily, stood on the promontory."


@given(text=st.text(), kind=st.sampled_from(DeltaKind), seed=st.integers(0, 2**32))
def test_the_deltas_joined_are_the_text(text: str, kind: DeltaKind, seed: int) -> None:
    assert "".join(split(text, kind, Random(seed))) == text


def test_deltas_are_what_their_kind_says() -> None:
    assert split(TEXT, DeltaKind.WHOLE, Random(0)) == [TEXT]
    assert split("Two words ", DeltaKind.WORDS, Random(0)) == ["Two", " words "]
    tokens = split(TEXT, DeltaKind.TOKENS, Random(0))
    assert max(len(token) for token in tokens) <= 7
    assert len(tokens) > len(TEXT.split())


def test_the_first_delta_comes_at_once_and_the_rest_at_the_wanted_speed() -> None:
    timing = DeltaTiming(DeltaKind.TOKENS, tokens_per_second=50, jitter=0.5)
    gaps = [gap for gap, _ in schedule(TEXT * 200, timing, Random(1))]
    assert gaps[0] == 0.0
    assert sum(gaps) / (len(gaps) - 1) == pytest.approx(1 / 50, rel=0.05)
    assert min(gaps[1:]) > 0


def test_jitter_is_the_spread_of_the_gaps() -> None:
    even = schedule(TEXT, DeltaTiming(jitter=0.0), Random(1))
    assert len({round(gap, 9) for gap, _ in even[1:]}) == 1
    timing = DeltaTiming(tokens_per_second=50, jitter=0.5)
    gaps = [gap for gap, _ in schedule(TEXT * 200, timing, Random(1))][1:]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert deviation / mean == pytest.approx(0.5, rel=0.1)


def test_stalls_come_as_often_as_asked() -> None:
    timing = DeltaTiming(jitter=0.0, stall_chance=0.1, stall_seconds=3.0)
    gaps = [gap for gap, _ in schedule(TEXT * 100, timing, Random(1))][1:]
    assert sum(gap > 2.0 for gap in gaps) / len(gaps) == pytest.approx(0.1, abs=0.03)


def test_the_same_seed_gives_the_same_schedule() -> None:
    timing = DeltaTiming(stall_chance=0.1)
    assert schedule(TEXT, timing, Random(5)) == schedule(TEXT, timing, Random(5))
    assert schedule(TEXT, timing, Random(5)) != schedule(TEXT, timing, Random(6))


@pytest.mark.parametrize(
    "bad", [{"tokens_per_second": 0.0}, {"jitter": -1.0}, {"stall_chance": 2.0}]
)
def test_timing_that_cannot_work_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        DeltaTiming(**bad)  # type: ignore[arg-type]
