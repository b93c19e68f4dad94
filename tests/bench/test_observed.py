import pytest

from realtime_tts.bench.observation import (
    Observation,
    Observed,
    busy_window,
    clock,
    merged,
    most_at_once,
    span,
)
from tts_scheduler.report import Trace

SECOND = bytes(2 * 24_000)


def turn(asked_at: float, *packets_at: float) -> Observation:
    """A second of speech at each of these times."""
    seen = Observation(5, Trace(asked_at=asked_at))
    for at in packets_at:
        seen.packet(SECOND, at)
    return seen


def test_throughput_is_counted_while_all_sessions_have_sound() -> None:
    quick = [turn(0.0, 1.0, 2.0), turn(2.0, 3.0)]
    slow = [turn(0.0, 1.5, 4.0, 5.0)]
    seen = Observed([*quick, *slow], 5.0, 2, busy=busy_window([quick, slow]))
    assert seen.busy == (1.5, 5.0)
    assert seen.busy_audio_rate == pytest.approx(4 / 3.5)  # at 2, 3, 4 and 5 s
    seen.fillers.append(turn(3.0, 3.5, 4.5, 6.0))  # the last packet came too late to count
    assert seen.busy_audio_rate == pytest.approx(6 / 3.5)


def test_a_session_without_sound_has_no_part_in_the_window() -> None:
    assert busy_window([[turn(0.0)], [turn(0.0, 1.0, 2.0)]]) == (1.0, 2.0)
    assert busy_window([[turn(0.0)]]) is None
    assert Observed([], 0.0, 1).busy_audio_rate is None
    assert Observed([turn(0.0, 1.0)], 0.0, 1, busy=(1.0, 1.0)).busy_audio_rate is None


def test_turns_that_touch_are_not_at_once() -> None:
    assert most_at_once([turn(0.0, 2.0), turn(2.0, 3.0), turn(1.0, 4.0)]) == 2
    assert most_at_once([turn(0.0)]) == 0


def test_a_turn_that_was_refused_does_not_lengthen_the_pass() -> None:
    begun = clock()
    turns = [turn(begun, begun + 2), Observation.failed(5, "overloaded")]
    assert span(turns) == pytest.approx(2.0)
    assert span(turns[1:]) == 0.0


def test_the_parts_of_several_processes_are_one_pass() -> None:
    first = Observed([turn(0.0, 2.0)], 2.0, 1, busy=(1.0, 2.0), late=[0.1], cpu=0.2)
    second = Observed([turn(1.0, 4.0)], 3.0, 1, busy=(1.5, 4.0), late=[0.3], cpu=0.1)
    both = merged([first, second], 2)
    assert (both.seconds, both.sessions, both.processes) == (4.0, 2, 2)
    assert (both.busy, both.late, both.cpu) == ((1.5, 4.0), [0.1, 0.3], 0.2)
    assert span(both.turns) == 4.0
    assert merged([first, second], 0).sessions == 2  # they overlapped
