"""Clients of other APIs get the speed that they ask for; or the nearest one, and a warning."""

from __future__ import annotations

from math import ceil
from typing import Any

import pytest

from tests.dialects.cartesian import RAW, cartesian
from tests.dialects.cartesian import sound_of as cartesian_sound
from tests.dialects.deepgrams import connected
from tests.dialects.elevens import eleven
from tests.dialects.elevens import sound_of as eleven_sound
from tests.dialects.omni import STREAM, omni
from tests.dialects.qwen_realtime import qwen_realtime
from tests.dialects.qwen_realtime import sound_of as qwen_realtime_sound
from tests.dialects.tones import FRAME
from tests.server.asking import answer_to
from tests.server.speaking import speaking
from tests.server.talking import sound_of

TEXT = "Hello there, and good morning."
OPENAI, ELEVENLABS = "/v1/audio/speech", "/v1/text-to-speech/alto?output_format=pcm_24000"
CARTESIA, DEEPGRAM = "/tts/bytes", "/v1/speak?encoding=linear16&container=none"
IN_OPENAI = {"input": TEXT, "voice": "alto", "response_format": "pcm"}
IN_CARTESIA = {"transcript": TEXT, "output_format": RAW}


def sound_at(speed: float) -> int:
    """Bytes of the text's sound, which takes a frame a character."""
    return 2 * ceil(len(TEXT) * FRAME // 2 / speed)


@pytest.mark.parametrize(
    ("path", "asked", "speed", "warned"),
    [
        (OPENAI, IN_OPENAI, 1.0, False),
        (OPENAI, IN_OPENAI | {"speed": 1}, 1.0, False),
        (OPENAI, IN_OPENAI | {"speed": 1.25}, 1.25, False),
        (OPENAI, IN_OPENAI | {"speed": 4.0}, 1.4, True),
        (OPENAI, IN_OPENAI | {"speed": 0.25}, 0.7, True),
        (ELEVENLABS, {"text": TEXT, "voice_settings": {"speed": None}}, 1.0, False),
        (ELEVENLABS, {"text": TEXT, "voice_settings": {"speed": 0.7}}, 0.7, False),
        (ELEVENLABS, {"text": TEXT, "voice_settings": {"speed": 1.2}}, 1.2, False),
        (CARTESIA, IN_CARTESIA | {"generation_config": {}}, 1.0, False),
        (CARTESIA, IN_CARTESIA | {"generation_config": {"speed": 0.8}}, 0.8, False),
        (CARTESIA, IN_CARTESIA | {"generation_config": {"speed": 1.5}}, 1.4, True),
        (CARTESIA, IN_CARTESIA | {"speed": "normal"}, 1.0, False),
        (CARTESIA, IN_CARTESIA | {"speed": "fast"}, 1.2, False),
        (DEEPGRAM + "&speed=0.9", {"text": TEXT}, 0.9, False),
        (DEEPGRAM + "&speed=1.5", {"text": TEXT}, 1.4, True),
    ],
)
async def test_over_http(path: str, asked: dict[str, Any], speed: float, warned: bool) -> None:
    async with speaking() as server:
        answer = await answer_to(server, "POST", path, json=asked)
        assert answer.status_code == 200
        assert len(answer.content) == sound_at(speed)
        told = f'299 - "the speed is {speed:g}: this server has 0.7 to 1.4"'
        assert answer.headers.get("warning") == (told if warned else None)


async def test_a_word_that_names_no_speed_is_an_error() -> None:
    async with speaking() as server:
        asked = IN_CARTESIA | {"speed": "brisk"}
        answer = await answer_to(server, "POST", CARTESIA, json=asked)
        assert answer.status_code == 400 and "slow, normal, fast" in answer.text


@pytest.mark.parametrize("path", ["/v1/speak", "/v2/speak"])
async def test_over_deepgrams_sockets(path: str) -> None:
    async with speaking() as server:
        async with connected(server, path, "?speed=1.25") as client:
            await client.say(TEXT)
            heard = await client.until("Flushed")
            assert len(sound_of(heard)) == sound_at(1.25)
        async with connected(server, path, "?speed=1.5") as client:
            warning: Any = (await client.until("Warning"))[-1]
            assert warning["code"] == "SPEED_NOT_SUPPORTED"
            assert warning["description"] == "the speed is 1.4: this server has 0.7 to 1.4"
            await client.say(TEXT)
            assert len(sound_of(await client.until("Flushed"))) == sound_at(1.4)


async def test_elevenlabs_contexts_have_the_speed_of_their_first_message() -> None:
    async with speaking() as server:
        async with eleven(server) as client:
            for name, more, speed in (("a", {"voice_settings": {"speed": 1.2}}, 1.2), ("b", {}, 1)):
                await client.send(text=" ", context_id=name, **more)
                await client.send(text=TEXT, context_id=name)
                await client.send(context_id=name, flush=True)
                await client.send(context_id=name, close_context=True)
                sound = eleven_sound(await client.until("isFinal"))
                assert len(sound) == pytest.approx(sound_at(speed), abs=2 * FRAME)


async def test_times_are_those_of_the_sound_as_it_is_sent() -> None:
    """The last character ends with the sound."""
    asked = {"text": TEXT, "voice_settings": {"speed": 1.2}}
    path = "/v1/text-to-speech/alto/with-timestamps?output_format=pcm_24000"
    async with speaking() as server:
        alignment = (await answer_to(server, "POST", path, json=asked)).json()["alignment"]
    assert "".join(alignment["characters"]) == TEXT
    ends = alignment["character_end_times_seconds"]
    assert ends[-1] == pytest.approx(sound_at(1.2) / 48_000, abs=0.001)


async def test_over_cartesias_socket() -> None:
    async with speaking() as server:
        async with cartesian(server) as client:
            await client.say(TEXT, generation_config={"speed": 0.8})
            assert len(cartesian_sound(await client.until("done"))) == sound_at(0.8)


async def test_over_the_sockets_of_vllm_omni_and_dashscope() -> None:
    async with speaking() as server:
        async with omni(server) as client:
            await client.config(speed=0.5, **STREAM)
            await client.text(TEXT)
            await client.done()
            assert len(sound_of(await client.until("session.done"))) == sound_at(0.7)
        async with qwen_realtime(server) as realtime:
            session = await realtime.update(speech_rate=1.25, mode="commit")
            assert session["speech_rate"] == 1.25
            session = await realtime.update(speech_rate=2.0, mode="commit")
            assert session["speech_rate"] == 1.4
            await realtime.append(TEXT)
            await realtime.commit()
            sound = qwen_realtime_sound(await realtime.until("response.done"))
            assert len(sound) == sound_at(1.4)
