"""Utterances whose prompt takes more text than a token, or brings text of its own."""

from __future__ import annotations

import pytest

from tts_scheduler import Layout, Scheduler, SchedulerConfig, StepPlan, StepResult
from tts_scheduler.playback import FRAME_SAMPLES


def opened(text_needed: int, layout: Layout = Layout.AUTO) -> Scheduler:
    scheduler = Scheduler(SchedulerConfig(slots=2))
    scheduler.open("a", prompt_tokens=20, now=0.0, layout=layout, text_needed=text_needed)
    return scheduler


def done(scheduler: Scheduler, plan: StepPlan | None, now: float) -> None:
    """Carry a plan out: every row makes its frame, and every codec run its samples."""
    assert plan is not None
    samples = {run.id: run.frames * FRAME_SAMPLES for run in plan.codec}
    scheduler.commit(plan, StepResult(0.01, frozenset(plan.ids), samples), now)


def frames_made(scheduler: Scheduler, now: float, most: int = 50) -> int:
    """Steps until the utterance is held; its listener hears every packet the moment it comes."""
    for made in range(most):
        plan = scheduler.plan(now)
        if plan is None or not (plan.prefills or plan.decodes):
            return made
        done(scheduler, plan, now)
        scheduler.played("a", 1000.0, now)
        now += 0.08
    return most


def test_nothing_starts_before_its_prompt_has_its_text() -> None:
    scheduler = opened(text_needed=5)
    scheduler.append("a", 4, 1.0)
    assert scheduler.plan(1.0) is None and scheduler.plan(100.0) is None
    scheduler.append("a", 2, 101.0)
    plan = scheduler.plan(101.0)
    assert plan is not None and plan.prefills[0].layout is Layout.STREAMING


@pytest.mark.parametrize("layout", [Layout.AUTO, Layout.STREAMING])
def test_a_text_that_is_complete_starts_however_short_it_is(layout: Layout) -> None:
    scheduler = opened(5, layout)
    scheduler.append("a", 2, 1.0)
    assert scheduler.finish("a", 1.5)
    plan = scheduler.plan(1.5)
    assert plan is not None and [prefill.id for prefill in plan.prefills] == ["a"]
    done(scheduler, plan, 1.6)
    assert frames_made(scheduler, 1.7) == 50


@pytest.mark.parametrize(("text_needed", "frames"), [(1, 7), (3, 5), (7, 1), (0, 8), (-4, 12)])
def test_a_turn_is_held_when_its_frames_have_used_its_text_up(
    text_needed: int, frames: int
) -> None:
    """With 7 tokens: frame 0 takes `text_needed` of them, every further frame one."""
    scheduler = opened(text_needed)
    scheduler.append("a", 7, 1.0)
    assert frames_made(scheduler, 1.2) == frames
    assert scheduler.held == 1
    scheduler.append("a", 2, 50.0)
    assert frames_made(scheduler, 50.0) == 2


def test_a_turn_without_text_is_over_whatever_its_reference_says() -> None:
    scheduler = opened(text_needed=-4)
    assert scheduler.plan(1.0) is None
    assert not scheduler.finish("a", 1.0)
