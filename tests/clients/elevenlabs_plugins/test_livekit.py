"""LiveKit's own ElevenLabs plugin: what is its own, beside plugins/test_livekit.py."""

from __future__ import annotations

from typing import Any

import pytest
from livekit.agents import APIError
from livekit.plugins import elevenlabs

from tests.clients.livekit_rig import say
from tests.clients.livekit_turns import Make, Plugin, fixtures, is_speech, refusal
from tests.clients.serving import Server


def tts(server: Server, session: Any, **options: Any) -> elevenlabs.TTS:
    asked = {"voice_id": "ava", "encoding": "pcm_24000"} | options
    asked.setdefault("api_key", server.api_key or "none")
    return elevenlabs.TTS(base_url=f"{server.url}/v1", http_session=session, **asked)


PLUGINS = [
    Plugin(
        "elevenlabs",
        tts,
        default={"voice_id": elevenlabs.DEFAULT_VOICE_ID},
        ways=[{"encoding": name} for name in ("pcm_24000", "mp3_22050_32", "mp3_44100_128")],
        words=True,
        cut_off_as="interrupted",
    )
]

plugin, make = fixtures(PLUGINS)


async def test_words_instead_of_sentences(make: Make) -> None:
    assert is_speech(await say(make(auto_mode=False, chunk_length_schedule=[50])))


async def test_the_list_of_voices(make: Make) -> None:
    assert {"ava", "ray"} <= {voice.id for voice in await make().list_voices()}


async def test_what_cannot_be_had_is_an_error(make: Make) -> None:
    with pytest.raises(APIError):
        await say(make(voice_id="nobody"))
    assert (await refusal(say(make(model="eleven_v3")))).status_code == 404


async def test_a_speed_is_taken(make: Make) -> None:
    fast = elevenlabs.VoiceSettings(stability=0.5, similarity_boost=0.5, speed=1.2)
    assert is_speech(await say(make(voice_settings=fast)))
