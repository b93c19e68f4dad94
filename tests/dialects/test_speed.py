"""A speed that this server does not have costs no speech: it is 1, and the client is told."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from realtime_tts.dialects.fields import SPEED_IS_ONE
from tests.dialects.cartesian import RAW, cartesian
from tests.dialects.cartesian import sound_of as cartesian_sound
from tests.dialects.deepgrams import connected
from tests.dialects.elevens import eleven
from tests.dialects.elevens import sound_of as eleven_sound
from tests.dialects.omni import FRAME, STREAM, omni, sound_of
from tests.dialects.qwen_realtime import qwen_realtime
from tests.dialects.qwen_realtime import sound_of as qwen_realtime_sound

TEXT = "Hello."
SOUND = len(TEXT) * FRAME
FAST_IN = {"voice_settings": {"speed": 1.2}}


@pytest.mark.parametrize(
    ("path", "asked", "plain"),
    [
        (
            "/v1/audio/speech",
            {"input": TEXT, "voice": "alto", "response_format": "pcm", "speed": 1.25},
            {"speed": 1},
        ),
        (
            "/v1/text-to-speech/alto?output_format=pcm_24000",
            {"text": TEXT, **FAST_IN},
            {"voice_settings": {"speed": None}},
        ),
        (
            "/tts/bytes",
            {"transcript": TEXT, "output_format": RAW, "generation_config": {"speed": 2}},
            {"generation_config": {}},
        ),
        (
            "/tts/bytes",
            {"transcript": TEXT, "output_format": RAW, "speed": "fast"},
            {"speed": "normal"},
        ),
    ],
)
async def test_over_http_the_header_warns_and_the_speech_is_there(
    speech: Any, path: str, asked: dict[str, Any], plain: dict[str, Any]
) -> None:
    async with speech() as server:
        async with httpx2.AsyncClient(base_url=server.running.url, trust_env=False) as http:
            answer = await http.post(path, json=asked)
            assert len(answer.content) == SOUND
            assert answer.headers["warning"] == f'299 - "{SPEED_IS_ONE}"'
            assert "warning" not in (await http.post(path, json=asked | plain)).headers


async def test_deepgram_warns_over_http_and_on_both_sockets(speech: Any) -> None:
    async with speech() as server:
        async with httpx2.AsyncClient(base_url=server.running.url, trust_env=False) as http:
            path = "/v1/speak?encoding=linear16&container=none&speed=0.7"
            answer = await http.post(path, json={"text": TEXT})
            assert len(answer.content) == SOUND
            assert SPEED_IS_ONE in answer.headers["warning"]
        for path in ("/v1/speak", "/v2/speak"):
            async with connected(server, path, "?speed=1.4") as client:
                warning: Any = (await client.until("Warning"))[-1]
                assert warning["code"] == "SPEED_NOT_SUPPORTED"
                assert warning["description"] == SPEED_IS_ONE
                await client.say(TEXT)
                assert len(sound_of(await client.until("Flushed"))) == SOUND


async def test_vllm_omni_and_dashscope_speak_all_the_same(speech: Any) -> None:
    async with speech() as server:
        async with omni(server) as client:
            await client.config(speed=0.5, **STREAM)
            await client.text(TEXT)
            await client.done()
            assert len(sound_of(await client.until("session.done"))) == SOUND
        async with qwen_realtime(server) as realtime:
            session = await realtime.update(speech_rate=1.5, mode="commit")
            assert session["speech_rate"] == 1.0
            await realtime.append(TEXT)
            await realtime.commit()
            assert len(qwen_realtime_sound(await realtime.until("response.done"))) == SOUND


async def test_elevenlabs_and_cartesia_speak_all_the_same(speech: Any) -> None:
    async with speech() as server:
        async with eleven(server) as client:
            await client.send(text=TEXT, context_id="a", **FAST_IN)
            await client.send(context_id="a", flush=True)
            await client.send(context_id="a", close_context=True)
            assert len(eleven_sound(await client.until("isFinal"))) == SOUND
        async with cartesian(server) as other:
            await other.say(TEXT, generation_config={"speed": 1.4})
            assert len(cartesian_sound(await other.until("done"))) == SOUND
