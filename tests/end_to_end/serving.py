"""A server with a real checkpoint in this event loop, and text as it arrives."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from realtime_tts.config import ServerConfig
from realtime_tts.engine.links import make_links
from realtime_tts.engine.load import load_tokenizer, voice_maker_loader
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.metrics import Metrics
from realtime_tts.server.run import RunningServer, running
from realtime_tts.voices.library import VoiceLibrary
from tests.unhurried import unhurried


@asynccontextmanager
async def serving(
    engine: EngineConfig, config: ServerConfig | None = None
) -> AsyncIterator[RunningServer]:
    """Files whose tests can share a server, which no test leaves otherwise than it found it, start
    it once."""
    metrics = Metrics()
    link = make_links((engine,), metrics, lambda *progress: None)
    voices = None
    if engine.voices_dir is not None:
        voices = VoiceLibrary(engine.voices_dir, voice_maker_loader(engine))
    server = running(
        config or ServerConfig(port=0),
        link,
        partial(load_tokenizer, engine),
        metrics,
        voices=voices,
    )
    async with AsyncExitStack() as stack:
        with unhurried():
            started = await stack.enter_async_context(server)
        yield started


def pieces(text: str, seed: int) -> Sequence[str]:
    """`text` cut at random, as a language model would emit it."""
    rng = random.Random(seed)
    cut, at = [], 0
    while at < len(text):
        size = rng.randint(1, 6)
        cut.append(text[at : at + size])
        at += size
    return cut
