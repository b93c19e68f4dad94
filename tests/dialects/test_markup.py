"""Tags in the texts of other APIs: never spoken, and understood as in the native protocol."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects import cartesian, elevens
from tests.dialects.tones import FRAME
from tests.server.asking import client_of
from tests.server.commands import utterances
from tests.server.speaking import speaking


def told(commands: list[Any]) -> list[tuple[str, str | None, str | None]]:
    """Text, voice and instructions of each utterance."""
    return [(text, spec.voice, spec.instructions) for text, spec in utterances(commands)]


ELEVENLABS = (
    '[excited] Well, [laughs] <phoneme alphabet="cmu-arpabet" ph="M AE1">maddy</phoneme>'
    '<break time="1.0s" /> hi.'
)


@pytest.mark.parametrize("size", [1, 7, 500])
async def test_tags_of_elevenlabs(size: int) -> None:
    async with speaking() as server, elevens.eleven(server, multi=False) as client:
        commands: list[Any] = server.spy_on_commands()
        await client.send(text=" ")
        for start in range(0, len(ELEVENLABS), size):
            await client.send(text=ELEVENLABS[start : start + size])
        await client.send(text="")
        messages = await client.until("isFinal")
    manner = "Speak in this manner: excited."
    said = told(commands)
    assert said == [("Well, maddy", "alto", manner), ("hi.", "alto", manner)]
    sound = elevens.sound_of(messages)
    assert len(sound) == len("Well, maddyhi.") * FRAME + 48_000, "and a second of silence"
    assert sum((a["chars"] for a in elevens.alignments(messages)), []) == list(ELEVENLABS)


CARTESIA = (
    '<emotion value="angry"/>Go. <speed ratio="1.25"/>My code is <spell>A1</spell>, [laughter] '
    '<volume ratio="0.5"/>yes.'
)


@pytest.mark.parametrize("size", [1, 7, 500])
async def test_tags_of_cartesia(size: int) -> None:
    async with speaking() as server, cartesian.cartesian(server) as client:
        commands: list[Any] = server.spy_on_commands()
        for start in range(0, len(CARTESIA), size):
            await client.say(CARTESIA[start : start + size], continue_=True)
        await client.say("", continue_=False, add_timestamps=True)
        messages = await client.until("done")
    assert [(text, manner) for text, _, manner in told(commands)] == [
        ("Go.", "Speak in this manner: angry."),
        ("My code is A 1,", "Speak in this manner: angry."),
        ("yes.", "Speak in this manner: angry."),
    ]
    expected = (len("Go.") + len("My code is A 1,yes.") / 1.25) * FRAME
    assert abs(len(cartesian.sound_of(messages)) - expected) <= 4


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/audio/speech", {"input": "TEXT", "model": "tts-1", "voice": "alto"}),
        ("/v1/text-to-speech/alto", {"text": "TEXT", "model_id": "m"}),
        ("/v1/speak?model=alto", {"text": "TEXT"}),
    ],
)
async def test_tags_are_unspoken_over_every_api(path: str, body: dict[str, str]) -> None:
    text = '<speak><expression value="sad"/>Hi &amp; <voice name="bass">bye</voice></speak>'
    body = {key: text if value == "TEXT" else value for key, value in body.items()}
    async with (
        speaking() as server,
        client_of(server) as client,
    ):
        commands: list[Any] = server.spy_on_commands()
        answer = await client.post(path, json=body)
        assert answer.status_code == 200, answer.text
    said = [(spoken.strip(), voice) for spoken, voice, _ in told(commands)]
    assert said == [("Hi &", "alto"), ("bye", "bass")]


@pytest.mark.parametrize(
    ("asked", "manner"),
    [
        ("calm", "Speak in this manner: calm."),
        (["curious", "positivity:high"], "Speak in this manner: curious, positivity:high."),
        ("neutral", None),
        (None, None),
    ],
)
async def test_the_emotion_of_a_request_to_cartesia(asked: Any, manner: Any) -> None:
    async with speaking() as server, cartesian.cartesian(server) as client:
        commands: list[Any] = server.spy_on_commands()
        await client.send(
            transcript="Go.",
            voice="BASS",
            output_format=cartesian.RAW,
            generation_config={"emotion": asked},
        )
        await client.until("done")
    assert told(commands) == [("Go.", "bass", manner)]
