import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_scheduler import Playback
from tts_scheduler.playback import FRAME_SECONDS

SECOND = 24_000


def test_a_frame_is_eighty_milliseconds() -> None:
    assert pytest.approx(0.08) == FRAME_SECONDS


def test_the_first_packet_starts_the_clock() -> None:
    playback = Playback()
    assert playback.runs_out_at is None
    assert playback.lead(5.0) == 0.0
    assert not playback.on_air
    assert playback.sent(1920, 10.0) == 0.0
    assert playback.on_air
    assert playback.runs_out_at == pytest.approx(10.08)
    assert playback.lead(10.03) == pytest.approx(0.05)


def test_packets_in_time_add_up() -> None:
    playback = Playback()
    for at in (10.0, 10.1, 10.2):
        assert playback.sent(SECOND, at) == 0.0
    assert playback.runs_out_at == pytest.approx(13.0)
    assert playback.sent_seconds == pytest.approx(3.0)
    assert playback.underruns == 0


def test_a_packet_at_the_deadline_is_in_time() -> None:
    playback = Playback()
    playback.sent(SECOND, 10.0)
    assert playback.sent(SECOND, 11.0) == 0.0


def test_a_late_packet_is_an_underrun_and_playing_resumes_with_it() -> None:
    playback = Playback()
    playback.sent(SECOND, 10.0)
    assert playback.sent(SECOND, 11.25) == pytest.approx(0.25)
    assert playback.underruns == 1
    assert playback.late_seconds == pytest.approx(0.25)
    assert playback.runs_out_at == pytest.approx(12.25)


def test_lead_is_never_negative() -> None:
    playback = Playback()
    playback.sent(1920, 10.0)
    assert playback.lead(50.0) == 0.0


def test_a_listener_who_still_hears_the_last_turn_starts_later() -> None:
    playback = Playback(listener_free_at=12.0)
    assert playback.runs_out_at == 12.0
    assert playback.lead(11.0) == pytest.approx(1.0)
    playback.sent(SECOND, 11.0)
    assert playback.runs_out_at == pytest.approx(13.0)


def test_a_pause_between_turns_is_no_underrun() -> None:
    playback = Playback(listener_free_at=12.0)
    assert playback.sent(SECOND, 15.0) == 0.0
    assert playback.underruns == 0
    assert playback.runs_out_at == pytest.approx(16.0)


def test_the_first_packet_leaves_at_once_with_what_there_is() -> None:
    playback = Playback()
    playback.feed(1920, 10.0)
    assert (playback.packets, playback.sent_samples, playback.unsent_samples) == (1, 1920, 0)


def test_later_packets_leave_only_when_full() -> None:
    playback = Playback()
    playback.feed(1920, 10.0)
    playback.feed(1920, 10.01)
    assert (playback.packets, playback.unsent_samples) == (1, 1920)
    playback.feed(1920, 10.02)
    assert (playback.packets, playback.unsent_samples) == (2, 1792)


def test_the_first_packet_is_never_more_than_full() -> None:
    playback = Playback()
    playback.feed(2 * 1920, 10.0)
    assert (playback.packets, playback.sent_samples, playback.unsent_samples) == (1, 2048, 1792)


def test_the_rest_leaves_at_the_end() -> None:
    playback = Playback()
    playback.feed(2 * 1920, 10.0)
    playback.end(10.01)
    assert (playback.packets, playback.sent_samples, playback.unsent_samples) == (2, 3840, 0)
    playback.end(10.02)
    assert playback.packets == 2


def test_unsent_samples_do_not_help_the_listener() -> None:
    playback = Playback()
    playback.feed(1920, 10.0)
    playback.feed(1920, 10.01)  # waits for its packet to be full
    assert playback.runs_out_at == pytest.approx(10.08)
    assert playback.feed(1920, 10.10) == pytest.approx(0.02)


def test_nothing_fed_sends_nothing() -> None:
    playback = Playback()
    playback.feed(0, 10.0)
    playback.end(10.0)
    assert not playback.on_air


def test_a_report_moves_the_deadline_both_ways() -> None:
    playback = Playback()
    playback.sent(SECOND, 10.0)
    playback.played(0.3, 10.5)  # a client that buffered 0.2 s first
    assert playback.runs_out_at == pytest.approx(11.2)
    playback.played(0.8, 10.6)  # a client whose sound card runs fast
    assert playback.runs_out_at == pytest.approx(10.8)


def test_a_report_cannot_claim_more_than_was_sent() -> None:
    playback = Playback()
    playback.sent(SECOND, 10.0)
    playback.played(99.0, 10.5)
    assert playback.runs_out_at == pytest.approx(10.5)


def test_reports_about_the_past_are_ignored() -> None:
    playback = Playback()
    playback.played(1.0, 9.0)
    playback.sent(SECOND, 10.0)
    playback.played(0.6, 10.5)
    playback.played(0.4, 10.6)
    assert playback.runs_out_at == pytest.approx(10.9)


@given(
    st.lists(st.tuples(st.floats(0.0, 0.3), st.integers(0, 8000)), max_size=40),
    st.sampled_from([None, 0.0, 0.5, 2.0]),
)
def test_feeding_samples_equals_sending_the_packets_they_make(
    runs: list[tuple[float, int]], free_at: float | None
) -> None:
    """A framer of our own in the test; both mirrors must then agree on everything."""
    fed, sent = Playback(listener_free_at=free_at), Playback(listener_free_at=free_at)
    now, waiting, late_fed, late_sent = 0.0, 0, 0.0, 0.0
    for wait, samples in runs:
        now += wait
        waiting += samples
        late_fed += fed.feed(samples, now)
        if waiting and not sent.on_air:
            first = min(waiting, 2048)
            late_sent += sent.sent(first, now)
            waiting -= first
        while waiting >= 2048:
            late_sent += sent.sent(2048, now)
            waiting -= 2048
    late_fed += fed.end(now)
    if waiting:
        late_sent += sent.sent(waiting, now)
    assert fed.runs_out_at == sent.runs_out_at
    assert (fed.packets, fed.underruns, fed.sent_samples) == (
        sent.packets,
        sent.underruns,
        sent.sent_samples,
    )
    assert late_fed == pytest.approx(late_sent) == pytest.approx(fed.late_seconds)
    assert fed.sent_samples == sum(samples for _, samples in runs)


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(1, 50_000)), min_size=1, max_size=30))
def test_gaps_and_sound_add_up_to_the_time_of_listening(packets: list[tuple[float, int]]) -> None:
    playback = Playback()
    now = 0.0
    for wait, samples in packets:
        now += wait
        playback.sent(samples, now)
    first, deadline = playback.first_sent_at, playback.runs_out_at
    assert first is not None and deadline is not None
    assert deadline - first == pytest.approx(playback.sent_seconds + playback.late_seconds)


def test_at_another_speed_what_is_made_lasts_as_long_as_it_is_played() -> None:
    playback = Playback.at_speed(1.25)
    playback.feed(5 * SECOND, 10.0)
    playback.end(10.0)
    assert playback.runs_out_at == pytest.approx(14.0)
    assert playback.sent_seconds == pytest.approx(4.0)
    playback.played(1.0, 11.5)
    assert playback.lead(11.5) == pytest.approx(3.0)


def test_a_packet_is_full_with_so_much_as_is_played_in_it() -> None:
    slow, fast = Playback.at_speed(0.75), Playback.at_speed(1.25)
    for playback in (slow, fast):
        playback.feed(4 * 2048, 10.0)
    assert (slow.packets, slow.unsent_samples) == (5, 4 * 2048 - 5 * 1536)
    assert (fast.packets, fast.unsent_samples) == (3, 4 * 2048 - 3 * 2560)


def test_what_waits_for_more_is_not_heard_before_that_comes_or_the_end() -> None:
    playback = Playback.at_speed(1.0, lookahead=480)
    playback.feed(400, 10.0)
    assert not playback.on_air and playback.fed_samples == 400
    playback.feed(1_520, 10.0)
    assert (playback.sent_samples, playback.fed_samples) == (1_440, 1_920)
    other = Playback.at_speed(1.0, lookahead=480, listener_free_at=10.06)
    other.resume(playback.fed_samples, playback.unsent_samples, 10.0)
    for one in (playback, other):
        one.feed(2_048, 10.05)
        one.end(10.05)
        assert (one.sent_samples, one.fed_samples) == (3_968, 3_968)
