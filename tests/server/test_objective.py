"""What counts for the objective, and what meets it: as docs/metrics.md says."""

from __future__ import annotations

import pytest

from realtime_tts.metrics import Metrics
from realtime_tts.protocol.effects import TurnFailure, TurnStats
from realtime_tts.server.reporter import SessionReporter


def counted(
    reason: str = "complete", failure: TurnFailure | None = None, **stats: float | None
) -> tuple[float | None, float | None]:
    """Turns that count, and good ones, after one with these."""
    metrics = Metrics()
    reporter = SessionReporter("session", "client", metrics)
    reporter.done("turn", reason, TurnStats(**stats), 10, failure=failure)  # type: ignore[arg-type]
    value = metrics.registry.get_sample_value
    return value("tts_slo_turns_total"), value("tts_slo_good_turns_total")


@pytest.mark.parametrize(("ttfa_ms", "good"), [(1.0, 1), (300.0, 1), (300.1, 0), (5_000.0, 0)])
@pytest.mark.parametrize("reason", ["complete", "interrupted", "guard_silence", "closed"])
def test_a_turn_that_sounds_is_good_if_it_begins_within_300_ms(
    reason: str, ttfa_ms: float, good: int
) -> None:
    assert counted(reason, ttfa_ms=ttfa_ms) == (1, good)


def test_a_turn_with_an_underrun_is_not_good() -> None:
    assert counted(ttfa_ms=50.0, underruns=1) == (1, 0)


def test_one_that_never_sounded_tells_nothing() -> None:
    for reason in ("interrupted", "closed", "complete"):
        assert counted(reason) == (0, 0)


@pytest.mark.parametrize(
    ("code", "retryable", "counts"),
    [
        ("overloaded", True, 1),
        ("engine_error", True, 1),
        ("internal", True, 1),
        ("text_too_long", False, 0),
        ("slow_reader", False, 0),
        ("queue_full", True, 0),
    ],
)
@pytest.mark.parametrize("ttfa_ms", [None, 50.0])
def test_a_failure_counts_if_it_is_the_servers(
    code: str, retryable: bool, counts: int, ttfa_ms: float | None
) -> None:
    failure = TurnFailure(code, "why", retryable)
    assert counted(failure=failure, ttfa_ms=ttfa_ms) == (counts, 0)


def test_what_came_on_another_socket_was_counted_there() -> None:
    metrics = Metrics()
    before = TurnStats(samples=24_000, ttfa_ms=50.0, underruns=1)
    after = TurnStats(samples=48_000, ttfa_ms=50.0, underruns=1)
    SessionReporter("session", "client", metrics).done("turn", "complete", after, 10, before)
    value = metrics.registry.get_sample_value
    assert value("tts_slo_turns_total") == value("tts_slo_good_turns_total") == 1
