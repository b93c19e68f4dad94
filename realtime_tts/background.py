"""What a process does again and again beside its work, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


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
