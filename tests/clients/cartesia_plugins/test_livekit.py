"""LiveKit's own Cartesia plugin: what is its own, beside plugins/test_livekit.py."""

from __future__ import annotations

from typing import Any

import pytest
from livekit.agents import APIError
from livekit.plugins import cartesia

from tests.clients.livekit_rig import TEXT, read, say
from tests.clients.livekit_turns import Make, Plugin, fixtures, refusal
from tests.clients.serving import Server


def tts(server: Server, session: Any, **options: Any) -> cartesia.TTS:
    asked = {"voice": "ava", "api_key": server.api_key or "none"} | options
    return cartesia.TTS(base_url=server.url, http_session=session, **asked)


PLUGINS = [
    Plugin(
        "cartesia",
        tts,
        default={"voice": cartesia.tts.TTSDefaultVoiceId},
        ways=[{"sample_rate": 24_000}, {"sample_rate": 16_000}],
        words=True,  # the plugin finds each word in what it sent
        cut_off_as="closed",  # the plugin says nothing, it closes the socket
    )
]

plugin, make = fixtures(PLUGINS)


async def test_the_key_is_checked_over_http(make: Make, keyed_server: Server) -> None:
    error = await refusal(read(make(keyed_server, api_key="wrong"), TEXT))
    assert error.status_code == 401


@pytest.mark.parametrize(
    ("wrong", "told"), [({"voice": "nobody"}, "ava"), ({"volume": 1.2}, "volume")]
)
async def test_what_cannot_be_had_is_an_error(make: Make, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(APIError, match=told):
        await say(make(**wrong))
    assert (await refusal(read(make(**wrong), TEXT))).status_code == 400
