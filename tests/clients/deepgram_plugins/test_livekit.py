"""LiveKit's own Deepgram plugins, Aura's and Flux': what is their own, beside
plugins/test_livekit.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from livekit.agents import APIError
from livekit.agents.tts import TTS
from livekit.plugins import deepgram

from tests.clients.livekit_rig import TEXT, read, say
from tests.clients.livekit_turns import Make, Plugin, fixtures, refusal
from tests.clients.serving import Server

KINDS: dict[str, tuple[Any, str]] = {
    "v1": (deepgram.TTS, "aura-2-ava-en"),
    "v2": (deepgram.TTSv2, "flux-ava-en"),
}


def tts(version: str, server: Server, session: Any, **options: Any) -> TTS:
    kind, model = KINDS[version]
    asked = {"model": model, "api_key": server.api_key or "none"} | options
    made: TTS = kind(base_url=f"{server.url}/{version}/speak", http_session=session, **asked)
    return made


PLUGINS = [
    Plugin(
        version,
        partial(tts, version),
        default={"model": "aura-2-andromeda-en"},
        ways=[{"sample_rate": 24_000}, {"sample_rate": 16_000}],
        # The plugin says nothing and leaves the socket; it closes it when it needs the next one.
        cut_off_as="closed",
    )
    for version in KINDS
]

plugin, make = fixtures(PLUGINS)


async def test_what_cannot_be_had_is_an_error(make: Make) -> None:
    assert (await refusal(say(make(model="nobody")))).status_code == 400
    with pytest.raises(APIError):
        await read(make(model="nobody"), TEXT)
