"""TimeSlices: everybody in turn, a little at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime_tts.server.time_slices import TimeSlices


class Work:
    """So many steps, noted in `done`."""

    def __init__(self, name: str, steps: int, done: list[str]) -> None:
        self.name, self.steps, self.done = name, steps, done

    def step(self) -> bool:
        self.done.append(self.name)
        self.steps -= 1
        return self.steps > 0


async def passes_until(done: list[str], count: int) -> int:
    """Passes of the event loop until so much is done."""
    passes = 0
    async with asyncio.timeout(5):
        while len(done) < count:
            await asyncio.sleep(0)
            passes += 1
    return passes


async def test_each_has_a_step_in_turn_and_a_pass_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 0.0)
    slices, done = TimeSlices(), list[str]()
    for name, steps in (("a", 4), ("b", 2), ("c", 1)):
        slices.add(Work(name, steps, done).step)
    assert done == [], "nothing is done at once"
    assert await passes_until(done, 7) == 7
    assert done == list("abcabaa")
    slices.add(Work("d", 1, done).step)
    assert await passes_until(done, 8) == 1


async def test_a_slice_goes_on_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 60.0)
    slices, done = TimeSlices(), list[str]()
    slices.add(Work("a", 100, done).step)
    slices.add(Work("b", 100, done).step)
    assert await passes_until(done, 200) == 1


async def test_a_step_may_add_others_and_one_that_fails_stops_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 0.0)
    slices, done, failures = TimeSlices(), list[str](), list[Any]()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))

    def fails() -> bool:
        slices.add(Work("added", 2, done).step)
        raise RuntimeError("on purpose")

    slices.add(fails)
    slices.add(Work("other", 2, done).step)
    assert await passes_until(done, 4) == 5
    assert sorted(done) == ["added", "added", "other", "other"]
    assert [str(failure) for failure in failures] == ["on purpose"]


async def test_a_key_has_one_turn_however_much_it_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 0.0)
    slices, done = TimeSlices(), list[str]()
    for _ in range(100):
        slices.add(Work("flood", 3, done).step, "flooder")
    slices.add(Work("one", 3, done).step, "other")
    await passes_until(done, 306 - 6)
    assert done[:6] == ["flood", "one"] * 3


async def test_what_is_done_at_once_is_part_of_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 0.0)
    slices, done, passes = TimeSlices(), list[str](), list[int]()
    turns = [
        asyncio.create_task(slices.take_turn(Work(name, 1, done).step, name)) for name in "abcd"
    ]
    while not all(turn.done() for turn in turns):
        await asyncio.sleep(0)
        passes.append(len(done))
    assert done == list("abcd")
    assert max(after - before for before, after in zip([0, *passes], passes, strict=False)) == 1


async def test_who_waits_for_a_turn_hears_what_went_wrong_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 0.0)
    slices = TimeSlices()

    def fails() -> None:
        raise RuntimeError("on purpose")

    for _ in range(2):  # at once, and in a later pass
        with pytest.raises(RuntimeError, match="on purpose"):
            await slices.take_turn(fails)
