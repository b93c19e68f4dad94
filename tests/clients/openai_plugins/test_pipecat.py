"""Pipecat's own OpenAI service: what is its own, beside plugins/test_pipecat.py."""

from __future__ import annotations

from typing import Any

from pipecat.frames.frames import ErrorFrame
from pipecat.services.openai.tts import OpenAITTSService

from tests.clients.pipecat_rig import response
from tests.clients.pipecat_turns import DELTAS, LONG, Service, pipeline
from tests.clients.serving import Server


def service(server: Server, api_key: str | None = None, **settings: Any) -> OpenAITTSService:
    asked = OpenAITTSService.Settings(**{"voice": "nova"} | settings)
    key = api_key or server.api_key or "none"
    return OpenAITTSService(api_key=key, base_url=f"{server.url}/v1", settings=asked)


SERVICES = [
    Service(
        "openai",
        service,
        ways=[{"instructions": "Calmly."}],
        contexts=False,
        reconnects=False,
        cut_off_as="closed",
        endless=LONG.replace(". ", ", ") * 2,  # one sentence, longer than the longest lead
    )
]


async def test_what_cannot_be_had_is_told(server: Server) -> None:
    async with pipeline(service(server, instructions="Slowly. " * 2_000)) as rig:
        await rig.send(*response(*DELTAS))
        assert "instructions" in await rig.first_error()


async def test_a_busy_server_says_so(busy_server: Server) -> None:
    """OpenAI's client tries again before it does; the framework complains of the silence first."""
    async with pipeline(service(busy_server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: any("503" in frame.error for frame in rig.of(ErrorFrame)))
