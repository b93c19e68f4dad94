import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.client.client import Backoff
from realtime_tts.errors import ConfigError


@given(attempt=st.integers(1, 10_000), random=st.floats(0, 1, exclude_max=True))
def test_a_delay_is_positive_and_never_longer_than_the_longest(attempt: int, random: float) -> None:
    backoff = Backoff(first=0.1, factor=2.0, longest=5.0)
    assert 0.05 <= backoff.delay(attempt, random) <= 5.0


def test_delays_grow_by_the_factor_until_the_longest() -> None:
    backoff = Backoff(first=0.1, factor=2.0, longest=0.5)
    assert [backoff.delay(n, 0.0) for n in range(1, 5)] == pytest.approx([0.05, 0.1, 0.2, 0.25])


def test_jitter_spreads_clients_over_half_the_delay() -> None:
    backoff = Backoff(first=1.0, factor=2.0, longest=5.0)
    assert backoff.delay(1, 0.0) == pytest.approx(0.5)
    assert backoff.delay(1, 0.999) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("bad", [{"first": 0.0}, {"factor": 0.5}, {"first": 9.0}])
def test_a_backoff_that_cannot_work_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="a backoff needs"):
        Backoff(**bad)
