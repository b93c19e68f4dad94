"""Work that is done again and again."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from realtime_tts.background import repeat


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
