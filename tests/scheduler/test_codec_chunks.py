from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.scheduler.conftest import Rig
from tts_scheduler import Layout, Phase, Playback, SchedulerConfig
from tts_scheduler.policy import codec_run, first_run, may_be_late
from tts_scheduler.utterance import Utterance

CONFIG = SchedulerConfig()
STEP = 0.01


def row(
    lead: float = 0.0, runs: int = 0, listener_free_at: float | None = None, unsent: int = 128
) -> Utterance:
    """A speaking row; at time 0 its listener has `lead` seconds to hear.

    `unsent` samples wait for their packet to be full: with 128, one frame fills it.
    """
    playback = Playback(listener_free_at=listener_free_at)
    if lead:
        playback.sent(round(lead * 24_000), 0.0)
        playback.unsent_samples = unsent
    return Utterance(
        id="a",
        order=1,
        prompt_tokens=10,
        layout=Layout.STREAMING,
        opened_at=0.0,
        lead_cap=3.0,
        listener_free_at=listener_free_at,
        playback=playback,
        phase=Phase.SPEAKING,
        codec_runs=runs,
    )


def run(row: Utterance, pending: int, has_next: bool = True, step: float = STEP) -> int:
    return codec_run(row, pending, has_next, 0.0, step, CONFIG)


def test_nothing_pending_is_nothing_to_do() -> None:
    assert run(row(lead=1.0), 0) == 0
    assert run(row(lead=1.0), 0, has_next=False) == 0


def test_runs_grow_while_the_next_packet_is_safe() -> None:
    assert [run(row(2.0, runs=1), pending) for pending in (1,)] == [1]
    assert [run(row(2.0, runs=2), pending) for pending in (1, 2)] == [0, 2]
    assert [run(row(2.0, runs=9), pending) for pending in (1, 2, 3, 4)] == [0, 0, 0, 4]


def test_a_run_that_fills_no_packet_waits_for_one_that_does() -> None:
    assert [run(row(0.05, runs=1, unsent=0), pending) for pending in (1, 2)] == [0, 2]
    assert run(row(0.05, runs=1, unsent=127), 1) == 0
    assert run(row(0.05, runs=1, unsent=0), 1, has_next=False) == 1


def test_a_run_does_not_wait_when_the_next_packet_is_not_safe() -> None:
    assert run(row(0.2, runs=9), 1) == 1
    assert run(row(0.2, runs=9), 3) == 3
    # with four steps of 10 ms and a reserve of 300 ms, 340 ms are just enough to wait for three
    assert run(row(0.341, runs=9), 1) == 0
    assert run(row(0.339, runs=9), 1) == 1


def test_a_row_about_to_wait_for_text_gives_all_it_has() -> None:
    assert run(row(2.0, runs=9), 1, has_next=False) == 1
    assert run(row(2.0, runs=9), 3, has_next=False) == 3
    assert run(row(), 1, has_next=False, step=1.0) == 1


def test_one_frame_leaves_at_once_when_two_more_come_before_it_is_heard() -> None:
    assert first_run(row(), 1, 0.0, 0.037, CONFIG) == 1  # 80 ms, 5 of them for its delivery


def test_a_slow_delivery_leaves_less_time_for_the_second_packet() -> None:
    slow, none = replace(CONFIG, delivery_seconds=0.02), replace(CONFIG, delivery_seconds=0.0)
    assert [first_run(row(), 1, 0.0, 0.031, config) for config in (slow, none)] == [0, 1]
    assert [first_run(row(), 1, 0.0, 0.029, config) for config in (slow, none)] == [1, 1]


@pytest.mark.parametrize("step", [0.038, 0.079])
def test_sound_waits_for_a_second_frame_when_the_second_packet_would_be_late(step: float) -> None:
    assert first_run(row(), 1, 0.0, step, CONFIG) == 0
    assert first_run(row(), 2, 0.0, step, CONFIG) == 2


def test_a_machine_slower_than_speech_does_not_wait_for_ever() -> None:
    assert [first_run(row(), pending, 0.0, 0.5, CONFIG) for pending in (1, 2, 3, 4)] == [0, 0, 0, 4]


def test_a_listener_who_hears_the_last_turn_needs_no_waiting() -> None:
    assert first_run(row(listener_free_at=0.5), 1, 0.0, 0.079, CONFIG) == 1


def test_the_second_packet_is_kept_even_with_one_frame_per_run() -> None:
    config = SchedulerConfig(codec_chunks=(1,))
    assert first_run(row(), 1, 0.0, 0.06, config) == 0
    assert first_run(row(), 2, 0.0, 0.06, config) == 2


def test_a_schedule_that_begins_higher_is_respected() -> None:
    config = SchedulerConfig(codec_chunks=(3, 4))
    assert [first_run(row(), pending, 0.0, 0.001, config) for pending in (1, 2, 3)] == [0, 0, 3]


def test_a_frame_waits_for_the_next_steps_run_where_the_listener_has_the_time() -> None:
    reserve = CONFIG.reserve
    late = [may_be_late(row(lead), 0.0, STEP, CONFIG) for lead in (reserve, reserve + 3 * STEP)]
    assert late == [False, True]
    assert not may_be_late(row(), 0.0, STEP, CONFIG), "nobody hears it yet: it is the first sound"


def test_with_a_lead_the_codec_is_given_frames_that_are_there(
    make_rig: Callable[..., Rig],
) -> None:
    """Then it can run beside the talker. The first frames, which somebody waits for, are turned in
    the step that makes them; and so are the last ones before a text is used up."""
    rig = make_rig(step_seconds=STEP)
    rig.open("a", 60)
    turned, inside = 0, list[bool]()
    for _ in range(60):
        there = rig.frames.get("a", 0)
        plan = rig.steps(1)[0]
        for run in plan.codec:
            turned += run.frames
            inside.append(turned > there)
    assert turned == 60 and len(inside) > 10
    assert inside[0] and inside[-1] and not any(inside[8:-1])
