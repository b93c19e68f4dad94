"""The server that several files share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from realtime_tts.engine.settings import EngineConfig
from realtime_tts.server.run import RunningServer
from tests.end_to_end.serving import serving
from tts_scheduler import SchedulerConfig


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def demo_server() -> AsyncIterator[RunningServer]:
    """With the demo voice and eight slots, for tests that leave it as it was: eight speak in hardly
    more time than one, if they speak at once."""
    # What a busy test machine manages in real time must not decide who is admitted.
    scheduler = SchedulerConfig(slots=8, max_start_wait=0.05, utilisation=1_000)
    async with serving(EngineConfig(scheduler=scheduler)) as server:
        yield server
