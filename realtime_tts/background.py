"""Tasks beside the work of a process: how they end, and those that are done again and again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

log = logging.getLogger(__name__)


async def cancel(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel the tasks, and wait until they have ended, however they do."""
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def repeat(name: str, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    """Until this is cancelled: wait for so long, do the work, and again.

    What the work raises is logged as `NAME.failed`, once until it succeeds again, and the next
    round comes all the same: a watch that ended would be missed by nobody.
    """
    failing = False
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except Exception:
            if not failing:
                log.exception(f"{name}.failed")
            failing = True
        else:
            failing = False
