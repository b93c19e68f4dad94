"""Deepgram's Python client against the demo voice."""

from __future__ import annotations

import io
import itertools
import wave
from typing import Any

import pytest
import websockets
from deepgram import AsyncDeepgramClient, DeepgramClient
from deepgram.core.api_error import ApiError
from deepgram.core.events import EventType
from deepgram.environment import DeepgramClientEnvironment
from deepgram.errors import BadRequestError
from deepgram.speak.v1.types import SpeakV1Text
from deepgram.speak.v2.types import (
    SpeakV2Configure,
    SpeakV2Interrupt,
    SpeakV2InterruptPlaybackOffset,
    SpeakV2Speak,
)

from tests.clients.serving import Server
from tests.clients.speaking import LONG, RATE, TEXT, deltas, is_speech

AURA: dict[str, Any] = {
    "model": "aura-2-ava-en",
    "encoding": "linear16",
    "sample_rate": str(RATE),
}
FLUX: dict[str, Any] = AURA | {"model": "flux-ava-en"}


def options(server: Server, api_key: str | None = None) -> dict[str, Any]:
    environment = DeepgramClientEnvironment(
        base=server.url, production=server.websocket_url, agent="", agent_rest=""
    )
    return {"api_key": api_key or server.api_key or "none", "environment": environment}


@pytest.fixture
def api(server: Server) -> DeepgramClient:
    return DeepgramClient(**options(server))


def until(socket: Any, type: str) -> list[Any]:
    """Everything up to the first message of this type; `sound` is a type."""
    seen: list[Any] = []
    while not seen or type_of(seen[-1]) != type:
        seen.append(socket.recv())
    return seen


def type_of(message: Any) -> str:
    return "sound" if isinstance(message, bytes) else message.type


def types_of(seen: list[Any]) -> list[str]:
    return [type for type, _ in itertools.groupby(map(type_of, seen))]


def sound_of(seen: list[Any]) -> bytes:
    return b"".join(message for message in seen if isinstance(message, bytes))


# /v1/speak


def test_deltas_are_spoken_turn_by_turn(api: DeepgramClient) -> None:
    with api.speak.v1.connect(**AURA) as socket:
        greeting = socket.recv()
        assert greeting.type == "Metadata" and greeting.model_name == "aura-2-ava-en"
        for turn in range(3):
            for delta in deltas(TEXT):
                socket.send_text(SpeakV1Text(text=delta))
            socket.send_flush()
            seen = until(socket, "Flushed")
            assert seen[-1].sequence_id == turn and is_speech(sound_of(seen))


def test_sound_comes_before_the_flush(api: DeepgramClient) -> None:
    with api.speak.v1.connect(**AURA) as socket:
        socket.send_text(SpeakV1Text(text=LONG))
        assert sound_of(until(socket, "sound"))
        socket.send_flush()
        until(socket, "Flushed")


def test_a_barge_in_and_the_next_turn(api: DeepgramClient, server: Server) -> None:
    cut = server.value('tts_turns_total{reason="interrupted"}')
    with api.speak.v1.connect(**AURA) as socket:
        socket.send_text(SpeakV1Text(text=LONG))
        until(socket, "sound")
        socket.send_clear()
        assert until(socket, "Cleared")[-1].sequence_id == 0
        socket.send_text(SpeakV1Text(text=TEXT))
        socket.send_flush()
        seen = until(socket, "Flushed")
        assert types_of(seen) == ["sound", "Flushed"] and is_speech(sound_of(seen))
    server.until('tts_turns_total{reason="interrupted"}', cut + 1)
    server.until("tts_open_turns", 0)


def test_close_at_once_and_listen(api: DeepgramClient) -> None:
    """As Deepgram's own examples do it."""
    seen: list[Any] = []
    with api.speak.v1.connect(**AURA) as socket:
        socket.on(EventType.MESSAGE, seen.append)
        socket.on(EventType.ERROR, seen.append)
        socket.send_text(SpeakV1Text(text=TEXT))
        socket.send_flush()
        socket.send_close()
        socket.start_listening()
    assert types_of(seen) == ["Metadata", "sound", "Flushed"]
    assert is_speech(sound_of(seen))


@pytest.mark.parametrize(
    ("encoding", "rate", "width"), [("mulaw", 8_000, 1), ("linear16", 48_000, 2)]
)
def test_formats(api: DeepgramClient, encoding: str, rate: int, width: int) -> None:
    asked = AURA | {"encoding": encoding, "sample_rate": str(rate)}
    with api.speak.v1.connect(**asked) as socket:
        socket.send_text(SpeakV1Text(text=TEXT))
        socket.send_flush()
        sound = sound_of(until(socket, "Flushed"))
        assert is_speech(sound, rate=rate * width // 2)


async def test_the_async_client(server: Server) -> None:
    async with AsyncDeepgramClient(**options(server)).speak.v1.connect(**AURA) as socket:
        for delta in deltas(TEXT):
            await socket.send_text(SpeakV1Text(text=delta))
        await socket.send_flush()
        seen: list[Any] = []
        async for message in socket:
            seen.append(message)
            if type_of(message) == "Flushed":
                break
        assert is_speech(sound_of(seen))


# /v2/speak


def speak(socket: Any, text: str) -> None:
    for delta in deltas(text):
        socket.send_speak(SpeakV2Speak(text=delta))


def test_turns_of_flux(api: DeepgramClient) -> None:
    with api.speak.v2.connect(**FLUX, tag=["a", "b"], expressivity=1) as socket:
        assert socket.recv().type == "Connected"
        for turn in range(3):
            speak(socket, TEXT)
            socket.send_flush()
            seen = until(socket, "SpeechMetadata")
            assert types_of(seen) == ["SpeechStarted", "sound", "Flushed", "SpeechMetadata"], turn
            assert is_speech(sound_of(seen))
            assert seen[-1].input_character_count == len(TEXT)
            assert seen[-1].audio_duration_ms == round(len(sound_of(seen)) * 500 / RATE)
        socket.send_close()
        assert until(socket, "SessionMetadata")[-1].total_input_character_count == 3 * len(TEXT)


def test_an_interrupt_tells_what_was_heard(api: DeepgramClient, server: Server) -> None:
    with api.speak.v2.connect(**FLUX) as socket:
        speak(socket, LONG)
        heard = b""
        while len(heard) < RATE * 2 * 2:
            heard += sound_of(until(socket, "sound"))
        offset = SpeakV2InterruptPlaybackOffset(value=1_500)
        socket.send_interrupt(SpeakV2Interrupt(playback_offset=offset))
        report = until(socket, "SpeechInterrupted")[-1]
        assert report.audio_played_ms == 1_500
        assert report.text_spoken + report.text_remaining == LONG
        assert report.text_spoken.startswith("The museum") and len(report.text_spoken) < 60
        speak(socket, TEXT)
        socket.send_flush()
        seen = until(socket, "SpeechMetadata")
        assert types_of(seen)[0] == "SpeechStarted" and is_speech(sound_of(seen))
    server.until("tts_open_turns", 0)


def test_an_interrupt_without_a_position(api: DeepgramClient) -> None:
    with api.speak.v2.connect(**FLUX) as socket:
        socket.send_interrupt()
        assert until(socket, "Warning")[-1].code == "NO_AUDIO_GENERATED"
        speak(socket, LONG)
        until(socket, "sound")
        socket.send_interrupt()
        report = until(socket, "SpeechInterrupted")[-1]
        assert report.text_spoken is None and report.metadata.audio_duration_ms > 0


def test_configure(api: DeepgramClient) -> None:
    with api.speak.v2.connect(**FLUX) as socket:
        socket.send_configure(SpeakV2Configure(speed=1.0))
        assert until(socket, "ConfigureSuccess")[-1].applied.speed == 1.0
        socket.send_configure(SpeakV2Configure(speed=1.15))
        assert until(socket, "ConfigureSuccess")[-1].applied.speed == 1.15
        socket.send_configure(SpeakV2Configure(speed=1.5))
        assert until(socket, "Warning")[-1].code == "SPEED_NOT_SUPPORTED"


async def test_the_async_client_of_flux(server: Server) -> None:
    async with AsyncDeepgramClient(**options(server)).speak.v2.connect(**FLUX) as socket:
        for delta in deltas(TEXT):
            await socket.send_speak(SpeakV2Speak(text=delta))
        await socket.send_flush()
        seen = [await socket.recv()]
        while type_of(seen[-1]) != "SpeechMetadata":
            seen.append(await socket.recv())
        assert is_speech(sound_of(seen))


# HTTP


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_speech_over_http(api: DeepgramClient, version: str) -> None:
    audio = getattr(api.speak, version).audio
    asked: dict[str, Any] = {"text": TEXT, "model": "flux-ava-en", "encoding": "linear16"}
    raw = b"".join(audio.generate(**asked, container="none", sample_rate=RATE))
    assert is_speech(raw)
    with wave.open(io.BytesIO(b"".join(audio.generate(**asked, container="wav")))) as opened:
        assert (opened.getframerate(), opened.getsampwidth()) == (RATE, 2)
    mp3 = b"".join(audio.generate(text=TEXT, model="aura-2-thalia-en"))
    assert mp3[0] == 0xFF and len(mp3) > 8_000
    with audio.with_raw_response.generate(text=TEXT, model="aura-2-zeus-en") as answer:
        assert answer.headers["dg-char-count"] == str(len(TEXT))
        assert answer.headers["dg-request-id"]


# What is refused.


def refused_with(version: Any, **asked: Any) -> int:
    """The status that a socket is refused with.

    The sync client means ApiError, but with websockets 14 and later it lets theirs through.
    """
    with pytest.raises((ApiError, websockets.InvalidStatus)) as caught:
        with version.connect(**AURA | asked):
            pass
    error: Any = caught.value
    return int(error.status_code if isinstance(error, ApiError) else error.response.status_code)


def test_a_voice_that_is_not_there(api: DeepgramClient) -> None:
    with pytest.raises(BadRequestError) as caught:
        list(api.speak.v1.audio.generate(text=TEXT, model="nobody"))
    assert "ava" in caught.value.body["err_msg"]
    for version in (api.speak.v1, api.speak.v2):
        assert refused_with(version, model="nobody") == 400


def test_the_key_is_checked(keyed_server: Server) -> None:
    good = DeepgramClient(**options(keyed_server))
    with good.speak.v1.connect(**AURA) as socket:
        socket.send_text(SpeakV1Text(text="Yes."))
        socket.send_flush()
        assert sound_of(until(socket, "Flushed"))
    assert list(good.speak.v1.audio.generate(text="Yes."))
    wrong = DeepgramClient(**options(keyed_server, "wrong"))
    for version in (wrong.speak.v1, wrong.speak.v2):
        assert refused_with(version) == 401
    with pytest.raises(ApiError) as caught:
        list(wrong.speak.v1.audio.generate(text="Yes."))
    assert caught.value.status_code == 401


def test_a_token_that_the_client_asked_for_speaks_and_gives_no_other(keyed_server: Server) -> None:
    granted = DeepgramClient(**options(keyed_server)).auth.v1.tokens.grant(ttl_seconds=60)
    assert granted.expires_in == 60
    environment = options(keyed_server)["environment"]
    page = DeepgramClient(access_token=granted.access_token, environment=environment)
    with page.speak.v1.connect(**AURA) as socket:
        socket.send_text(SpeakV1Text(text=TEXT))
        socket.send_flush()
        assert is_speech(sound_of(until(socket, "Flushed")))
    with pytest.raises(ApiError) as caught:
        page.auth.v1.tokens.grant()
    assert caught.value.status_code == 401


async def test_the_key_of_the_async_client_is_checked(keyed_server: Server) -> None:
    wrong = AsyncDeepgramClient(**options(keyed_server, "wrong"))
    with pytest.raises(ApiError) as caught:
        async with wrong.speak.v2.connect(**FLUX):
            pass
    assert caught.value.status_code == 401


def test_a_busy_server_says_so(busy_server: Server) -> None:
    api = DeepgramClient(**options(busy_server))
    for version in (api.speak.v1, api.speak.v2):
        assert refused_with(version) == 503
    with pytest.raises(ApiError) as caught:
        list(api.speak.v1.audio.generate(text=TEXT, request_options={"max_retries": 0}))
    assert caught.value.status_code == 503
