import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.adapters.utterance import Listener, Playback
from tts_scheduler.playback import Playback as ServersMirror


def heard(playback: Playback, *times: float) -> list[float]:
    return [round(playback.heard(now), 6) for now in times]


def test_sound_is_heard_from_when_it_comes() -> None:
    playback = Playback(Listener())
    assert heard(playback, 9.0) == [0.0]
    playback.give(2.0, now=10.0)
    assert heard(playback, 9.5, 10.0, 11.5, 12.0, 20.0) == [0.0, 0.0, 1.5, 2.0, 2.0]
    assert not playback.over(11.9)
    assert playback.over(12.0)


def test_late_sound_leaves_a_gap_in_which_nothing_more_is_heard() -> None:
    playback = Playback(Listener())
    playback.give(1.0, now=10.0)
    assert heard(playback, 12.0) == [1.0]
    playback.give(1.0, now=13.0)
    assert (playback.gaps, playback.seconds) == (2.0, 2.0)
    assert heard(playback, 13.0, 13.5, 14.0) == [1.0, 1.5, 2.0]


def test_an_utterance_is_heard_behind_the_one_before() -> None:
    listener = Listener()
    first, second = Playback(listener), Playback(listener)
    first.give(3.0, now=10.0)
    second.give(1.0, now=10.5)
    second.give(1.0, now=13.5)
    assert second.gaps == 0.0
    assert heard(second, 12.0, 13.5, 15.0) == [0.0, 0.5, 2.0]


def test_what_was_dropped_keeps_nobody_waiting() -> None:
    listener = Listener()
    Playback(listener).give(3.0, now=10.0)
    listener.drop()
    after = Playback(listener)
    after.give(1.0, now=11.0)
    assert heard(after, 11.5) == [0.5]


def test_the_drop_of_another_utterance_is_no_gap() -> None:
    listener = Listener()
    first, second = Playback(listener), Playback(listener)
    first.give(1.0, now=10.0)
    second.give(2.0, now=10.1)
    listener.drop()  # of the first; the second is not to be interrupted
    second.give(1.0, now=10.5)
    second.give(1.0, now=14.5)
    assert second.gaps == 0.5
    assert heard(second, 15.0) == [3.5]


def test_a_framework_that_begins_later_has_played_less() -> None:
    playback = Playback(Listener())
    playback.give(1.0, now=10.0)
    playback.begins(now=10.3)
    playback.give(1.0, now=10.9)
    assert heard(playback, 10.3, 11.0, 12.3) == [0.0, 0.7, 2.0]
    assert playback.gaps == 0.0


def test_what_a_framework_has_behind_a_late_beginning_is_as_much_later() -> None:
    listener = Listener()
    first, second, third = (Playback(listener) for _ in range(3))
    first.give(1.0, now=10.0)
    second.give(2.0, now=10.1)
    first.begins(now=10.3)
    third.give(1.0, now=10.5)
    assert heard(third, 13.3, 13.8) == [0.0, 0.5]


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(1, 48_000)), min_size=1, max_size=20))
def test_it_is_the_servers_own_mirror(arrivals: list[tuple[float, int]]) -> None:
    mirror, playback, now = ServersMirror(24_000), Playback(Listener()), 100.0
    for wait, samples in arrivals:
        now += wait
        mirror.sent(samples, now)
        playback.give(samples / 24_000, now)
        assert playback.gaps == pytest.approx(mirror.late_seconds)
        left = mirror.sent_seconds - mirror.lead(now + 0.1)
        assert playback.heard(now + 0.1) == pytest.approx(left)
