"""The chat example on real sockets: a stand-in for the model, the fake engine for the voice."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from realtime_tts.config import ServerConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.server.run import running
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.server.apps import serving as behind_uvicorn
from tts_scheduler import SchedulerConfig


@contextlib.asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    async with behind_uvicorn(app) as (port, _):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
async def stand_in() -> AsyncIterator[Any]:
    """A model that says what it is told to; `stand_in.url`."""
    from stand_in import StandIn

    model = StandIn(pace=400, stall=0.05)
    async with serving(model.app()) as url:
        model.url = f"{url}/v1"  # type: ignore[attr-defined]
        yield model


Speaking = Callable[..., AbstractAsyncContextManager[str]]


@pytest.fixture
def speech() -> Speaking:
    """`async with speech(api_keys=...) as url`: a speech server with the fake engine."""

    @contextlib.asynccontextmanager
    async def start(**options: Any) -> AsyncIterator[str]:
        fake = FakeEngine(FakeEngineConfig(frames_per_token=1))
        link = InProcessEngine(lambda progress: fake, SchedulerConfig(slots=16))
        tokenizer = Qwen2Tokenizer({char: index for index, char in enumerate(ALPHABET)}, [])
        async with running(ServerConfig(port=0, **options), link, lambda: tokenizer) as server:
            yield server.url

    return start
