"""Pipecat's own Cartesia services: what is their own, beside plugins/test_pipecat.py."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from pipecat.services.cartesia.tts import (
    CartesiaHttpTTSService,
    CartesiaTTSService,
    GenerationConfig,
)
from pipecat.services.tts_service import TextAggregationMode

from tests.clients.pipecat_rig import response
from tests.clients.pipecat_turns import DELTAS, Service, pipeline, three_turns
from tests.clients.serving import Server

WRONG = [
    ({"voice": "nobody"}, "ava"),
    ({"generation_config": GenerationConfig(volume=1.2)}, "volume"),
]


def websocket(server: Server, **options: Any) -> CartesiaTTSService:
    settings = CartesiaTTSService.Settings(**{"voice": "ava"} | options.pop("settings", {}))
    key = options.pop("api_key", server.api_key or "none")
    url = f"{server.websocket_url}/tts/websocket"
    return CartesiaTTSService(api_key=key, url=url, settings=settings, **options)


def http(server: Server, session: Any = None, **settings: Any) -> CartesiaHttpTTSService:
    asked = CartesiaHttpTTSService.Settings(**{"voice": "ava"} | settings)
    return CartesiaHttpTTSService(
        api_key="none", base_url=server.url, aiohttp_session=session, settings=asked
    )


SERVICES = [
    Service(
        "cartesia",
        websocket,
        http,
        ways=[
            {"text_aggregation_mode": mode}
            for mode in (TextAggregationMode.SENTENCE, TextAggregationMode.TOKEN)
        ],
        timed=True,
    )
]


async def test_three_turns_over_http(server: Server) -> None:
    async with aiohttp.ClientSession() as session, pipeline(http(server, session)) as rig:
        await three_turns(rig)


@pytest.mark.parametrize(("wrong", "told"), WRONG)
async def test_what_cannot_be_had_is_told(server: Server, wrong: dict[str, Any], told: str) -> None:
    async with pipeline(websocket(server, settings=wrong)) as rig:
        await rig.send(*response(*DELTAS))
        error = await rig.first_error()
        assert "'status_code': 400" in error and told in error


@pytest.mark.parametrize(("wrong", "told"), WRONG)
async def test_what_cannot_be_had_over_http_is_told(
    server: Server, wrong: dict[str, Any], told: str
) -> None:
    async with pipeline(http(server, **wrong)) as rig:
        await rig.send(*response(*DELTAS))
        error = await rig.first_error()
        assert "status 400" in error and told in error


async def test_a_busy_server_says_so(busy_server: Server) -> None:
    async with pipeline(websocket(busy_server)) as rig:
        assert "HTTP 503" in await rig.first_error()
