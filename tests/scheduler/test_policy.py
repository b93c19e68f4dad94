from math import inf

import pytest

from tts_scheduler import Layout, Phase, Playback, SchedulerConfig
from tts_scheduler.policy import (
    due,
    first_run,
    is_ahead,
    next_packet,
    rest_seconds,
    resume_at,
    start_at,
    start_key,
)
from tts_scheduler.utterance import Utterance

CONFIG = SchedulerConfig()


def utterance(order: int = 1, listener_free_at: float | None = None) -> Utterance:
    return Utterance(
        id=f"u{order}",
        order=order,
        prompt_tokens=10,
        layout=Layout.AUTO,
        opened_at=10.0,
        lead_cap=3.0,
        listener_free_at=listener_free_at,
        playback=Playback(listener_free_at=listener_free_at),
        phase=Phase.WAITING,
    )


def with_text(tokens: int, at: float = 10.0, listener_free_at: float | None = None) -> Utterance:
    row = utterance(listener_free_at=listener_free_at)
    row.text_tokens, row.first_text_at = tokens, at
    return row


def test_nothing_starts_without_text() -> None:
    assert start_at(utterance(), CONFIG) == inf


def test_enough_text_starts_at_once() -> None:
    assert start_at(with_text(2), CONFIG) == 10.0


def test_too_little_text_waits_for_more_but_not_for_long() -> None:
    assert start_at(with_text(1), CONFIG) == pytest.approx(10.15)


def test_a_text_that_is_complete_does_not_wait_for_more() -> None:
    row = with_text(1)
    row.finished = True
    assert start_at(row, CONFIG) == 10.0


def test_full_text_waits_for_all_of_it() -> None:
    row = with_text(50)
    row.layout = Layout.FULL_TEXT
    assert start_at(row, CONFIG) == inf
    row.finished = True
    assert start_at(row, CONFIG) == 10.0


def test_a_start_rests_while_the_listener_has_plenty_of_the_last_turn_to_hear() -> None:
    assert start_at(with_text(5, listener_free_at=12.0), CONFIG) == 10.0
    assert start_at(with_text(5, listener_free_at=15.0), CONFIG) == pytest.approx(12.0)


def test_starts_go_by_when_the_listener_begins_to_wait() -> None:
    busy = with_text(5, at=10.0, listener_free_at=11.0)
    later = with_text(5, at=10.5)
    assert sorted([busy, later], key=start_key) == [later, busy]


def test_who_is_heard_already_starts_before_all_others() -> None:
    moved, also = with_text(5, at=11.0, listener_free_at=12.5), with_text(5, at=11.0)
    for row, dry_at in ((moved, 12.5), (also, 11.5)):
        row.frames = 20
        row.playback.runs_out_at = dry_at
    new = with_text(5, at=10.0)
    assert sorted([new, moved, also], key=start_key) == [also, moved, new]


def test_a_row_is_due_one_step_earlier_for_every_further_frame_its_packet_needs() -> None:
    row = with_text(5)
    row.playback.feed(1920, 10.0)  # heard until 10.08; the next packet needs two more frames
    assert next_packet(row) == (pytest.approx(10.08), 1)
    assert due(row, 0.03) == pytest.approx(10.05)
    row.codec_pending = 1
    assert next_packet(row) == (pytest.approx(10.08), 0)
    assert due(row, 0.03) == pytest.approx(10.08)


def test_a_frame_is_for_the_packet_after_those_that_are_made() -> None:
    row = with_text(5)
    row.playback.feed(1920, 10.0)
    row.codec_pending = 2  # fill the next packet, and 1,792 samples of the one after
    assert next_packet(row) == (pytest.approx(10.08 + 2048 / 24_000), 0)


def test_a_row_without_a_listener_yet_is_due_since_ever() -> None:
    assert due(with_text(5), 0.03) == -inf


def test_all_that_was_made_and_not_heard_counts_against_the_cap() -> None:
    row = with_text(5)
    row.playback.feed(38 * 1920, 10.0)  # 3.04 s made, of which 1,280 samples wait for their packet
    assert row.playback.lead(10.0) < 3.0
    assert is_ahead(row, 10.0)
    assert not is_ahead(row, 10.05)
    row.codec_pending = 1
    assert is_ahead(row, 10.05)


def test_a_parked_row_comes_back_one_codec_run_and_one_packet_below_the_cap() -> None:
    row = with_text(5)
    row.playback.sent(3 * 24_000, 10.0)
    assert rest_seconds(row, CONFIG) == pytest.approx(0.32 + 2048 / 24_000)
    assert resume_at(row, CONFIG) == pytest.approx(13.0 - (3.0 - rest_seconds(row, CONFIG)))


def test_a_parked_row_never_sleeps_into_the_reserve() -> None:
    row = with_text(5)
    row.lead_cap = 0.3
    row.playback.sent(24_000, 10.0)
    assert resume_at(row, CONFIG) == pytest.approx(11.0 - 0.3)


def at_speed(speed: float) -> Utterance:
    row = with_text(5)
    row.playback = Playback.at_speed(speed)
    return row


def test_a_row_that_is_played_faster_is_due_earlier_and_ahead_later() -> None:
    rows = {speed: at_speed(speed) for speed in (0.7, 1.0, 1.4)}
    for row in rows.values():
        row.playback.feed(40 * 1920, 10.0)
    deadlines = {speed: next_packet(row)[0] for speed, row in rows.items()}
    for speed, deadline in deadlines.items():
        assert deadline == pytest.approx(10.0 + 3.2 / speed, abs=0.1)
    assert [is_ahead(row, 10.1) for row in rows.values()] == [True, True, False]


def test_a_first_packet_of_fast_speech_waits_where_the_second_would_be_late() -> None:
    """80 ms that are played in 57, less what the time scale holds, are over before two steps."""
    assert first_run(at_speed(1.0), 1, 10.0, 0.03, CONFIG) == 1
    fast = with_text(5)
    fast.playback = Playback.at_speed(1.4, lookahead=480)
    assert first_run(fast, 1, 10.0, 0.03, CONFIG) == 0
    assert first_run(fast, 1, 10.0, 0.01, CONFIG) == 1
