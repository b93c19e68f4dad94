"""What the tests with OpenAI's own client ask, and of whom."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from realtime_tts.access.account import FREE, LIMIT_REACHED
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.link import Refused
from realtime_tts.protocol.effects import TurnFailure
from tests.waiting import until
from tests.when_used import WhenUsed

openai = WhenUsed("openai")

TEXT = "A sentence of some length."  # 26 tokens of one byte, 80 ms each
SECONDS = len(TEXT) * 0.08
LONG = TEXT * 10  # 21 s
SLOW = FakeEngineConfig(frames_per_token=1, step_seconds=0.01)


async def fail_midway(server: Any) -> None:
    """Once there is sound, every row that is speaking gives NaN at its next step."""
    await until(lambda: server.value("tts_packets_total"))
    server.engine.faults.numerics.update(server.engine._rows)


@contextlib.contextmanager
def full(server: Any) -> Iterator[None]:
    """Meanwhile the engine has just said that it has no room for another turn."""
    front = server.running.front
    front.engine.refused(front.settings(), Refused("one", "overloaded", "no", 60.0, full=True), "")
    yield
    front.engine._full.clear()


@contextlib.contextmanager
def used_up() -> Iterator[None]:
    """Meanwhile nobody may have more characters."""
    why = TurnFailure(LIMIT_REACHED, "no more characters; try again in 5 s", True, 5_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FREE, "text", lambda chars: why)
        yield


def client(server: Any, **options: Any) -> Any:
    settings = {"api_key": "none", "max_retries": 0, **options}
    return openai.AsyncOpenAI(base_url=f"{server.running.url}/v1", **settings)


async def speech_of(server: Any, text: str = TEXT, **options: Any) -> Any:
    asked: dict[str, Any] = {"model": "gpt-4o-mini-tts", "voice": "alto", "input": text, **options}
    async with client(server) as api:
        return await api.audio.speech.create(**asked)
