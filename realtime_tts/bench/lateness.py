"""How late the load generator itself is: a slow client must not be taken for a slow server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from realtime_tts.bench.turns import clock

_EVERY = 0.01


@dataclass(slots=True)
class Lateness:
    """`late`: by how many seconds a timer, set every 10 ms, woke too late. A packet that came
    meanwhile was seen as much too late at most. `cpu`: share of one core that this process took."""

    late: list[float] = field(default_factory=list)
    cpu: float = 0.0


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Lateness]:
    """Watch this process while a block runs; the figures are complete after it."""
    seen = Lateness()
    cpu, wall = time.process_time(), clock()
    task = asyncio.create_task(_watch(seen.late))
    try:
        yield seen
    finally:
        task.cancel()
        seen.cpu = (time.process_time() - cpu) / (clock() - wall)


async def _watch(late: list[float]) -> None:
    while True:
        due = clock() + _EVERY
        await asyncio.sleep(_EVERY)
        late.append(max(0.0, clock() - due))
