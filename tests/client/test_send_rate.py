import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.client.connection import send_rate
from realtime_tts.protocol.intake import Intake
from realtime_tts.protocol.settings import Limits

LIMITS = Limits(messages_per_second=100, message_burst=50)


@given(gaps=st.lists(st.floats(0, 0.05), min_size=1, max_size=400))
def test_a_client_that_waits_as_told_is_never_refused(gaps: list[float]) -> None:
    bucket, intake, now = send_rate(LIMITS), Intake(LIMITS), 0.0
    for gap in gaps:
        now += gap
        now += bucket.owe(now)
        assert intake.admits(now)


def test_a_burst_goes_out_without_waiting() -> None:
    bucket = send_rate(LIMITS)
    assert [bucket.owe(0.0) for _ in range(25)] == [0.0] * 25


def test_beyond_the_burst_messages_leave_below_the_servers_rate() -> None:
    bucket = send_rate(LIMITS)
    now = 0.0
    for _ in range(500):
        now += bucket.owe(now)
    assert 500 / now == pytest.approx(90, rel=0.1)


def test_interrupts_find_room_even_after_a_burst() -> None:
    bucket, intake = send_rate(LIMITS), Intake(LIMITS)
    for _ in range(25):
        bucket.owe(0.0)
        assert intake.admits(0.0)
    assert all(intake.admits(0.0) for _ in range(10))
