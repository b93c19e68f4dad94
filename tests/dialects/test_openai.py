"""OpenAI's own client, pointed at us, over real sockets."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Any

import numpy as np
import pytest

from realtime_tts.audio import codecs
from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.engine.fake import VOICES
from realtime_tts.engine.link import Open
from realtime_tts.errors import RequestError
from tests.audio.decoding import decoded, pitch
from tests.dialects.asking import LONG, SECONDS, SLOW, TEXT, client, openai, speech_of
from tests.engine.faulty import Faults
from tests.server.peers import Connecting
from tests.server.speaking import speaking

KEY = "sk-a-key-of-ours"


# Formats.


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("mp3", "audio/mpeg"),
        ("opus", "audio/ogg"),
        ("aac", "audio/aac"),
        ("flac", "audio/flac"),
        ("wav", "audio/wav"),
    ],
)
async def test_every_format_has_the_whole_speech_in_the_voice_asked_for(
    name: str, media_type: str
) -> None:
    async with speaking() as server:
        answer = await speech_of(server, response_format=name)
        assert answer.response.headers["content-type"] == media_type
        samples, rate = decoded(answer.content)
        assert 0 <= len(samples) / rate - SECONDS < 0.15
        assert pitch(samples, rate) == pytest.approx(VOICES["alto"], abs=1)


async def test_a_telephone_s_format_comes_by_its_name() -> None:
    async with speaking() as server:
        plain = await speech_of(server, response_format="pcm", extra_body={"seed": 3})
        answer = await speech_of(server, response_format="ulaw_8000", extra_body={"seed": 3})
    assert answer.response.headers["content-type"] == "audio/basic"
    assert len(answer.content) * 6 == len(plain.content)


async def test_mp3_is_what_comes_without_a_format() -> None:
    pytest.importorskip("av")
    async with speaking() as server:
        assert (await speech_of(server)).response.headers["content-type"] == "audio/mpeg"


async def test_pcm_is_the_samples_and_nothing_else() -> None:
    async with speaking() as server:
        answer = await speech_of(server, response_format="pcm")
        assert answer.response.headers["content-type"] == "audio/pcm"
        assert len(answer.content) == round(SECONDS * 24_000) * 2
        samples = np.frombuffer(answer.content, dtype="<i2")
        assert pitch(samples, 24_000) == pytest.approx(VOICES["alto"], abs=1)


async def test_without_codecs_the_default_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codecs, "av", None)
    async with speaking() as server:
        with pytest.raises(openai.BadRequestError, match=r"pip install .*\[codecs\]") as caught:
            await speech_of(server)
        assert caught.value.param == "response_format"
        assert "it has pcm_s16le, pcm_f32le, pcm_mulaw, pcm_alaw" in str(caught.value)
        assert (await speech_of(server, response_format="wav")).content


async def test_the_sync_client_streams_while_the_speech_is_made() -> None:
    def listen(url: str) -> list[int]:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as api:
            streaming = api.audio.speech.with_streaming_response
            made = []
            with streaming.create(
                model="tts-1", voice="alloy", input=LONG, response_format="pcm"
            ) as answer:
                for _ in answer.iter_bytes(4_096):
                    made.append(server.engine.open_utterances)
        return made

    async with speaking(engine=SLOW) as server:
        made = await asyncio.to_thread(listen, server.running.url)
        assert made[0] == 1, "the first bytes come before the speech is complete"


async def test_speech_comes_faster_than_it_plays() -> None:
    """Most clients play a file when it is complete."""
    async with speaking() as server, asyncio.timeout(20 * SECONDS - 10):
        answer = await speech_of(server, LONG * 2, response_format="pcm")
        assert len(answer.content) == 20 * round(SECONDS * 24_000) * 2


async def test_a_file_is_made_as_fast_as_the_machine_can_however_long_it_is() -> None:
    """Two texts with a pause between them, so that a second utterance goes on as fast."""
    config = ServerConfig(port=0, limits=LimitsConfig(max_lead_ms=3_000))
    async with speaking(config) as server:
        began = time.monotonic()
        text = f'{LONG}<break time="500ms"/>{LONG}'
        answer = await speech_of(server, text, response_format="pcm")
        assert len(answer.content) >= 2 * 10 * SECONDS * 48_000
        assert time.monotonic() - began < 30, f"{20 * SECONDS:.0f} s of sound, most of it held back"


async def test_a_client_that_reads_slowly_is_not_run_away_from(peer: Connecting) -> None:
    """It takes sound twice as fast as it plays: what is made ahead of that is bounded."""
    config = ServerConfig(port=0, limits=LimitsConfig(max_lead_ms=3_000))
    body = json.dumps({"voice": "alto", "input": LONG * 2, "response_format": "pcm"})
    async with speaking(config) as server:
        slow = await peer(server.port, receive_buffer=8_192)
        head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
        await slow.send((head + body).encode())
        await slow.head()
        (row,) = server.engine._rows.values()
        taken, began, most = 0, time.monotonic(), 0.0
        while taken < 7 * 48_000:
            taken += len(await asyncio.get_running_loop().sock_recv(slow.sock, 4_800))
            most = max(most, row.frames * 0.08 - taken / 48_000)
            await asyncio.sleep(max(0.0, began + taken / 96_000 - time.monotonic()))
        in_buffers = (
            config.socket.send_buffer * 2 + config.socket.write_high_water + 65_536
        ) / 48_000
        assert 3.0 < most < 3.0 + 1.0 + in_buffers


async def test_a_shorter_lead_can_be_asked_for() -> None:
    async with speaking() as server, client(server) as api:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await api.audio.speech.create(
            model="tts-1",
            voice="alto",
            input=TEXT,
            response_format="pcm",
            extra_body={"lead_ms": 400},
        )
        assert loop.time() - began > SECONDS - 1.0


# Events.


async def test_events_carry_the_sound_and_then_what_it_took() -> None:
    async with speaking() as server:
        answer = await speech_of(server, response_format="pcm", stream_format="sse")
        assert answer.response.headers["content-type"] == "text/event-stream"
        lines = [line for line in answer.text.split("\n\n") if line]
        events = [json.loads(line.removeprefix("data: ")) for line in lines]
        pieces = [base64.b64decode(each["audio"]) for each in events[:-1]]
        assert {each["type"] for each in events[:-1]} == {"speech.audio.delta"}
        assert all(len(piece) % 2 == 0 for piece in pieces) and len(pieces) > 5
        assert len(b"".join(pieces)) == round(SECONDS * 24_000) * 2
        used = {"input_tokens": 26, "output_tokens": 26, "total_tokens": 52}
        assert events[-1] == {"type": "speech.audio.done", "usage": used, "reason": "complete"}


# Text.


@pytest.mark.parametrize("text", ["…", "   ", "\n", "---", "!?"])
async def test_text_with_nothing_to_speak_is_a_little_silence(text: str) -> None:
    async with speaking() as server:
        answer = await speech_of(server, text, response_format="pcm")
        assert answer.content == bytes(4_800)
        await server.settled()


async def test_a_stall_in_the_middle_is_filled_with_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("realtime_tts.server.speech.STALL_SECONDS", 0.2)
    steps = 0

    def stall_once(plan: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == 5:
            time.sleep(0.5)

    async with speaking(faults=Faults(before_step=stall_once)) as server:
        began = time.monotonic()
        answer = await speech_of(server, response_format="pcm")
        took = time.monotonic() - began
        silences, other = divmod(len(answer.content) - round(SECONDS * 24_000) * 2, 4_800)
        assert other == 0 and 2 <= silences <= took / 0.2, "a slow machine stalls more often"
        assert bytes(4_800) in answer.content


# Voices, models, keys.


async def test_openai_s_voices_are_ours() -> None:
    async with speaking() as server:
        commands = server.spy_on_commands()
        for voice in ("alloy", "ash", {"id": "Soprano"}):
            await speech_of(server, "Hi.", voice=voice, response_format="pcm")
        voices = [command.spec.voice for command in commands if isinstance(command, Open)]
        assert voices == ["alto", "bass", "soprano"]


async def test_an_unknown_voice_is_told_the_known_ones() -> None:
    async with speaking() as server:
        with pytest.raises(openai.BadRequestError, match="alto, bass, soprano, tenor") as caught:
            await speech_of(server, voice="rachel")
        error = caught.value
        assert (error.param, error.code, error.type) == (
            "voice",
            "voice_not_found",
            "invalid_request_error",
        )
        assert error.request_id is not None and error.request_id.startswith("req_")
        await server.settled()


async def test_our_own_fields_reach_the_engine() -> None:
    async with speaking() as server, client(server) as api:
        commands = server.spy_on_commands()
        await api.audio.speech.create(
            model="any",
            voice="bass",
            input="Hi.",
            response_format="pcm",
            instructions="Slowly.",
            extra_body={"language": "English", "seed": 5, "whatever": True},
        )
        opened = next(command for command in commands if isinstance(command, Open))
        assert (opened.spec.language, opened.spec.seed) == ("English", 5)
        assert opened.spec.instructions == "Slowly."
        with pytest.raises(openai.BadRequestError, match="unknown language"):
            await api.audio.speech.create(
                model="any",
                voice="bass",
                input="Hi.",
                instructions="Slowly.",
                extra_body={"language": "klingon"},
            )


async def test_instructions_are_ignored_where_the_checkpoint_takes_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with speaking() as server:
        check = server.engine.check

        def refuse(spec: Any) -> None:
            if spec.instructions:
                raise RequestError("takes no instructions")
            check(spec)

        monkeypatch.setattr(server.engine, "check", refuse)
        answer = await speech_of(server, "Hi.", instructions="Whisper.", response_format="pcm")
        assert answer.content


async def test_the_loaded_model_is_listed() -> None:
    async with speaking() as server, client(server) as api:
        models = [model.id for model in (await api.models.list()).data]
        assert models == ["fake"]
        slash: Any = await api.get("/models/", cast_to=object)
        assert [model["id"] for model in slash["data"]] == models
        assert (await api.models.retrieve("fake")).owned_by == "realtime-tts"
        with pytest.raises(openai.NotFoundError, match="'Other/tts-1' does not exist.*'fake'"):
            await api.models.retrieve("Other/tts-1")


def voices_of_open_webui(data: Any) -> dict[str, str]:
    """As its `get_available_voices` reads them."""
    return {voice["id"]: voice["name"] for voice in data.get("voices", [])}


def voices_of_openreader(data: Any) -> list[str]:
    """As its `extractVoiceNames` reads them: what it asks for speech with."""
    return [item if isinstance(item, str) else item["name"] for item in data["voices"]]


async def test_open_webui_and_openreader_find_voices_and_models() -> None:
    async with speaking() as server, client(server) as api:
        voices = await api.get("/audio/voices", cast_to=object)
        assert voices_of_open_webui(voices) == {name: name for name in VOICES}
        for name in voices_of_openreader(voices):
            assert (await speech_of(server, "Hi.", voice=name, response_format="pcm")).content
        models: Any = await api.get("/audio/models", cast_to=object)
        assert models.get("models", []) == [{"id": "fake"}]


@pytest.mark.parametrize("base", ["", "/v1/v1"])
async def test_a_base_url_without_v1_or_with_two_is_told_the_right_path(base: str) -> None:
    async with speaking() as server, client(server) as api:
        api.base_url = f"{server.running.url}{base}"
        with pytest.raises(openai.NotFoundError, match="; /v1/audio/speech is there"):
            await api.audio.speech.create(model="tts-1", voice="alto", input="Hi.")
        with pytest.raises(openai.NotFoundError, match="nothing at .*/audio/nothing$"):
            await api.get("/audio/nothing", cast_to=object)


async def test_the_key_is_the_server_s_key() -> None:
    async with speaking(ServerConfig(port=0, api_keys=(KEY,))) as server:
        async with client(server, api_key=KEY) as api:
            answer = await api.audio.speech.create(
                model="tts-1", voice="alto", input="Hi.", response_format="pcm"
            )
            assert answer.content
        async with client(server, api_key="sk-wrong-one") as api:
            for ask in (
                lambda: api.audio.speech.create(model="tts-1", voice="alto", input="Hi."),
                lambda: api.models.list(),
            ):
                with pytest.raises(openai.AuthenticationError, match="valid API key") as caught:
                    await ask()
                assert caught.value.code == "invalid_api_key"
                assert caught.value.request_id is not None
                assert caught.value.response.headers["www-authenticate"] == "Bearer"
