from __future__ import annotations

import pytest

from realtime_tts.protocol.intake import Intake
from realtime_tts.protocol.settings import Limits

LIMITS = Limits(
    messages_per_second=8, message_burst=20, max_bad_messages=3, bad_message_window_ms=60_000
)


def test_a_burst_is_admitted_and_then_the_rate_applies() -> None:
    intake = Intake(LIMITS)
    assert [intake.admits(100.0) for _ in range(21)] == [True] * 20 + [False]
    assert intake.admits(100.125), "one more after 1/8 s"
    assert not intake.admits(100.125)


def test_a_steady_client_at_the_rate_is_always_admitted() -> None:
    intake = Intake(LIMITS)
    assert all(intake.admits(number / 8) for number in range(2_000))


def test_a_long_silence_saves_up_no_more_than_the_burst() -> None:
    intake = Intake(LIMITS)
    intake.admits(0.0)
    assert sum(intake.admits(1e6) for _ in range(100)) == 20


@pytest.mark.parametrize(
    ("times", "tolerated"),
    [
        ([0.0, 30.0, 60.0], False),
        ([0.0, 30.0, 60.1], True),
        ([0.0, 0.0, 0.0], False),
        ([0.0, 50.0, 100.0, 101.0], False),
        ([0.0, 50.0, 100.0, 150.0], True),
    ],
)
def test_bad_messages_count_within_a_sliding_window(times: list[float], tolerated: bool) -> None:
    intake = Intake(LIMITS)
    *before, last = times
    assert all(intake.tolerates_bad(time) for time in before)
    assert intake.tolerates_bad(last) is tolerated
