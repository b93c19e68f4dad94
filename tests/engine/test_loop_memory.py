"""The loop over an engine whose memory is short.

The fake engine checks that every row in a plan has its pages, that no page has two owners and that
rows come back whole.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import Append, Cancel, Ended, Failed, Finish, Open, Refused
from tests.engine.paged_fake import PagedFakeEngine
from tests.engine.test_loop import Listener, running
from tts_scheduler import StepPlan


def crowded(engine: FakeEngine) -> AbstractAsyncContextManager[tuple[InProcessEngine, Listener]]:
    """Everybody is let in: what is looked at is how they share the memory."""
    return running(engine, utilisation=1e6, kv_utilisation=1e6, max_queue=100)


def small(pages: int, plans: list[StepPlan]) -> PagedFakeEngine:
    config = FakeEngineConfig(slots=16, step_seconds=0.0, max_frames=60)
    engine = PagedFakeEngine(config, pages)
    engine.faults.before_step = plans.append
    return engine


def say(link: InProcessEngine, id: str, tokens: int, layout: str = "auto") -> None:
    ids = list(range(tokens))
    link.submit(Open(id, UtteranceSpec(layout=layout)), Append(id, ids), Finish(id))


async def all_over(listener: Listener, *ids: str) -> None:
    for id in ids:
        ended = await listener.over(id)
        assert isinstance(ended, Ended) and ended.reason == "complete", ended


async def test_turns_share_memory_for_two_of_them_and_all_are_spoken() -> None:
    plans: list[StepPlan] = []
    async with crowded(small(8, plans)) as (link, listener):
        for number in range(10):
            say(link, f"u{number}", tokens=12)
        await all_over(listener, *(f"u{number}" for number in range(10)))
        assert [listener.frames(f"u{number}") for number in range(10)] == [36] * 10
    assert 1 <= max(plan.rows for plan in plans) < 10


async def test_a_turn_that_waits_for_text_is_swapped_out_and_goes_on_later() -> None:
    plans: list[StepPlan] = []
    async with crowded(small(6, plans)) as (link, listener):
        link.submit(Open("slow", UtteranceSpec()), Append("slow", list(range(18))))
        await listener.until(lambda: listener.frames("slow") == 18)
        say(link, "quick", tokens=15)
        await all_over(listener, "quick")
        assert [out.id for plan in plans for out in plan.swap_outs] == ["slow"]
        link.submit(Append("slow", [1]), Finish("slow"))
        await all_over(listener, "slow")
        assert [back.id for plan in plans for back in plan.swap_ins] == ["slow"]
        assert listener.frames("slow") == 57


async def test_an_interrupt_frees_memory_for_the_next_turn_at_once() -> None:
    plans: list[StepPlan] = []
    async with crowded(small(6, plans)) as (link, listener):
        link.submit(Open("slow", UtteranceSpec()), Append("slow", list(range(20))))
        await listener.until(lambda: listener.frames("slow") == 20)
        link.submit(Cancel("slow"))
        say(link, "next", tokens=15)
        await all_over(listener, "next")
    assert not any(plan.swaps for plan in plans)


async def test_a_text_too_long_for_the_memory_is_refused_and_others_go_on() -> None:
    plans: list[StepPlan] = []
    async with crowded(small(6, plans)) as (link, listener):
        say(link, "long", tokens=80, layout="full_text")
        say(link, "good", tokens=10)
        refused = await listener.over("long")
        assert isinstance(refused, Failed) and refused.code == "bad_request"
        assert "91 positions" in refused.message and "send less text" in refused.message
        assert not refused.retryable
        await all_over(listener, "good")


async def test_a_turn_without_memory_to_expect_is_refused_with_a_time_to_retry() -> None:
    plans: list[StepPlan] = []
    async with running(small(8, plans), utilisation=1e6, max_queue=0) as (link, listener):
        link.submit(Open("slow", UtteranceSpec()), Append("slow", list(range(20))))
        await listener.until(lambda: listener.frames("slow") == 20)
        say(link, "more", tokens=12)
        refused = await listener.over("more")
        assert isinstance(refused, Refused) and refused.code == "overloaded"
        assert "memory" in refused.message and refused.retry_after > 0
