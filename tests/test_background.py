"""Tasks that are ended, and work that is done again and again."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from realtime_tts.background import cancel, repeat


async def test_work_that_raises_is_told_of_once_and_done_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rounds = iter([None, ValueError("first"), ValueError("same"), None, ValueError("later"), None])
    over = asyncio.Event()

    async def work() -> None:
        found = next(rounds, over)
        if isinstance(found, Exception):
            raise found
        if found is over:
            over.set()

    task = asyncio.create_task(repeat("watch", 0.001, work))
    await over.wait()
    failures = [record for record in caplog.records if record.getMessage() == "watch.failed"]
    assert [record.levelno for record in failures] == [logging.ERROR] * 2
    assert [str(record.exc_info[1]) for record in failures if record.exc_info] == ["first", "later"]
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_who_cancels_goes_on_when_the_tasks_have_ended() -> None:
    ended = []

    async def work(name: str, last: Exception | None = None) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append(name)
            if last is not None:
                raise last

    tasks = [asyncio.create_task(work("a")), asyncio.create_task(work("b", ValueError("last")))]
    await asyncio.sleep(0)
    await cancel(None, *tasks)
    assert sorted(ended) == ["a", "b"]
