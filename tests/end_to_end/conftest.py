"""A server with a real checkpoint in this event loop."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import pytest
import pytest_asyncio

from realtime_tts.config import ServerConfig
from realtime_tts.engine.links import make_links
from realtime_tts.engine.load import load_tokenizer, voice_maker_loader
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.metrics import Metrics
from realtime_tts.server.run import RunningServer, running
from realtime_tts.voices.library import VoiceLibrary
from tts_scheduler import SchedulerConfig

Serve = Callable[..., AbstractAsyncContextManager[RunningServer]]


@asynccontextmanager
async def serving(
    engine: EngineConfig, config: ServerConfig | None = None
) -> AsyncIterator[RunningServer]:
    metrics = Metrics()
    link = make_links((engine,), metrics, lambda *progress: None)
    voices = None
    if engine.voices_dir is not None:
        voices = VoiceLibrary(engine.voices_dir, voice_maker_loader(engine))
    async with running(
        config or ServerConfig(port=0),
        link,
        partial(load_tokenizer, engine),
        metrics,
        voices=voices,
    ) as server:
        yield server


@pytest.fixture
def serve() -> Serve:
    """Starts a server for an engine config. Files whose tests can share one, which no test leaves
    otherwise than it found it, start it once with `serving`."""
    return serving


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def demo_server() -> AsyncIterator[RunningServer]:
    """With the demo voice and eight slots, for tests that leave it as it was: eight speak in hardly
    more time than one, if they speak at once."""
    # What a busy test machine manages in real time must not decide who is admitted.
    scheduler = SchedulerConfig(slots=8, max_start_wait=0.05, utilisation=1_000)
    async with serving(EngineConfig(scheduler=scheduler)) as server:
        yield server


def pieces(text: str, seed: int, longest: int = 6) -> Sequence[str]:
    """`text` cut at random, as a language model would emit it."""
    rng = random.Random(seed)
    cut, at = [], 0
    while at < len(text):
        size = rng.randint(1, longest)
        cut.append(text[at : at + size])
        at += size
    return cut


@pytest.fixture(name="pieces")
def _pieces() -> Callable[..., Sequence[str]]:
    return pieces
