"""Cartesia's Python client against the demo voice."""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import cartesia
import pytest
import websockets
from cartesia import AsyncCartesia, Cartesia

from tests.clients.serving import Server
from tests.clients.speaking import LONG, RATE, TEXT, deltas, is_speech

RAW: Any = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": RATE}
VOICE: Any = {"mode": "id", "id": "ava"}
SETTINGS: dict[str, Any] = {"model_id": "sonic-3", "voice": VOICE, "output_format": RAW}


def options(server: Server, **more: Any) -> dict[str, Any]:
    return {
        "api_key": server.api_key or "none",
        "base_url": server.url,
        "websocket_base_url": server.websocket_url,
        "max_retries": 0,
        **more,
    }


@pytest.fixture
def api(server: Server) -> Iterator[Cartesia]:
    with Cartesia(**options(server)) as found:
        yield found


def sound(events: list[Any]) -> bytes:
    return b"".join(event.audio for event in events if event.type == "chunk")


def test_deltas_are_spoken_turn_by_turn(api: Cartesia) -> None:
    with api.tts.websocket_connect() as socket:
        for turn in range(3):
            context = socket.context(**SETTINGS)
            for delta in deltas(TEXT):
                context.push(delta)
            context.no_more_inputs()
            events = list(context.receive())
            assert events[-1].type == "done", turn
            assert is_speech(sound(events))


def test_tags_are_not_spoken_and_pauses_are_kept(api: Cartesia) -> None:
    tagged = (
        '<emotion value="content"/>The museum <speed ratio="1"/>is [laughter] open until six.'
        '<break time="1s"/>It is open.'
    )
    with api.tts.websocket_connect() as socket:
        context = socket.context(**SETTINGS)
        for delta in deltas(tagged):
            context.push(delta)
        context.no_more_inputs()
        spoken = sound(list(context.receive()))
    samples = memoryview(spoken).cast("h").tolist()
    pauses = (run for run in groupby(samples, key=bool) if not run[0])
    assert max(len(list(run)) for _, run in pauses) >= RATE
    assert is_speech(spoken[: -2 * RATE], TEXT + " It is open.")


def test_sound_comes_before_the_text_is_complete(api: Cartesia) -> None:
    with api.tts.websocket_connect() as socket:
        context = socket.context(**SETTINGS, timeout=60)
        context.push(LONG)
        events = context.receive()
        assert next(events).type == "chunk"
        context.no_more_inputs()
        assert [event.type for event in events][-1] == "done"


async def test_a_barge_in_and_the_next_turn(server: Server) -> None:
    cut = server.value('tts_turns_total{reason="interrupted"}')
    async with AsyncCartesia(**options(server)) as api, api.tts.websocket_connect() as socket:
        first = socket.context(**SETTINGS)
        await first.push(LONG)
        async for event in first.receive():
            assert event.type == "chunk"
            break
        await first.cancel()
        second = socket.context(**SETTINGS)
        await second.push(TEXT)
        await second.no_more_inputs()
        events = [event async for event in second.receive()]
        assert events[-1].type == "done" and is_speech(sound(events))
    server.until('tts_turns_total{reason="interrupted"}', cut + 1)
    server.until("tts_open_turns", 0)


async def test_contexts_in_parallel_do_not_mix(server: Server) -> None:
    async with AsyncCartesia(**options(server)) as api, api.tts.websocket_connect() as socket:

        async def speak(text: str) -> list[Any]:
            context = socket.context(**SETTINGS)
            for delta in deltas(text):
                await context.push(delta)
                await asyncio.sleep(0)
            await context.no_more_inputs()
            return [event async for event in context.receive()]

        short, long = "Yes.", TEXT + " Do come in."
        found = await asyncio.gather(speak(short), speak(long), speak(short))
        assert [len({event.context_id for event in events}) for events in found] == [1, 1, 1]
        sizes = [len(sound(events)) for events in found]
        assert min(sizes) > 0 and sizes[1] > 2 * max(sizes[0], sizes[2])


def test_flushes_have_numbers(api: Cartesia) -> None:
    with api.tts.websocket_connect() as socket:
        context = socket.context(**SETTINGS)
        for _ in range(2):
            context.push(TEXT)
            context.push("", flush=True)
        context.no_more_inputs()
        events = list(context.receive())
        assert [event.flush_id for event in events if event.type == "flush_done"] == [1, 2]
        assert {event.flush_id for event in events if event.type == "chunk"} == {1, 2}
        assert is_speech(sound(events), TEXT * 2)


def test_words_have_times(api: Cartesia) -> None:
    with api.tts.websocket_connect() as socket:
        context = socket.context(**SETTINGS, add_timestamps=True)
        context.push(TEXT)
        context.no_more_inputs()
        events = list(context.receive())
        times = [event.word_timestamps for event in events if event.type == "timestamps"]
        assert sum((each.words for each in times), []) == TEXT.split()
        ends: list[float] = sum((each.end for each in times), [])
        assert ends == sorted(ends)
        assert ends[-1] <= len(sound(events)) / 2 / RATE + 1e-3


def test_the_older_way_to_send(api: Cartesia) -> None:
    socket = api.tts.websocket()
    socket.connect()
    events = socket.send(
        model_id="sonic-3", transcript=TEXT, voice=VOICE, output_format=RAW, stream=True
    )
    assert is_speech(b"".join(event.audio for event in events if event.audio))
    socket.close()


def test_bytes_and_events_over_http(api: Cartesia) -> None:
    raw = api.tts.generate(transcript=TEXT, **SETTINGS).read()
    assert is_speech(raw)
    wav = api.tts.generate(
        transcript=TEXT, **SETTINGS | {"output_format": RAW | {"container": "wav"}}
    )
    with wave.open(io.BytesIO(wav.read())) as opened:
        assert (opened.getframerate(), opened.getsampwidth()) == (RATE, 2)
    call: Any = {"container": "raw", "encoding": "pcm_mulaw", "sample_rate": 8_000}
    telephone = api.tts.generate(transcript=TEXT, **SETTINGS | {"output_format": call}).read()
    assert len(telephone) > 8_000  # more than a second
    events = list(api.tts.generate_sse(transcript=TEXT, add_timestamps=True, **SETTINGS))
    assert is_speech(sound(events)) and events[-1].type == "done"
    assert any(event.type == "timestamps" for event in events)


def test_the_voices_are_the_demo_voice_s(api: Cartesia) -> None:
    assert {"ava", "ray"} <= {voice.id for voice in api.voices.list(limit=2)}
    assert api.voices.get("ray").name == "ray"


def test_a_voice_that_is_not_there(api: Cartesia) -> None:
    wrong = SETTINGS | {"voice": {"mode": "id", "id": "nobody"}}
    with api.tts.websocket_connect() as socket:
        context = socket.context(**wrong)
        context.push(TEXT)
        (event,) = context.receive()
        assert event.type == "error" and event.status_code == 400
        assert "ava" in event.error
    with pytest.raises(cartesia.BadRequestError, match="ava"):
        api.tts.generate(transcript=TEXT, **wrong)


def test_the_key_is_checked(keyed_server: Server) -> None:
    with Cartesia(**options(keyed_server)) as api:
        assert is_speech(api.tts.generate(transcript=TEXT, **SETTINGS).read())
        with api.tts.websocket_connect() as socket:
            context = socket.context(**SETTINGS)
            context.push("Yes.", continue_=False)
            assert list(context.receive())[-1].type == "done"
    with Cartesia(**options(keyed_server, api_key="wrong")) as api:
        with pytest.raises(cartesia.AuthenticationError):
            api.tts.generate(transcript=TEXT, **SETTINGS)
        with pytest.raises(websockets.InvalidStatus) as caught, api.tts.websocket_connect():
            pass
        assert caught.value.response.status_code == 401


def test_a_token_that_the_client_asked_for_speaks_and_gives_no_other(keyed_server: Server) -> None:
    with Cartesia(**options(keyed_server)) as api:
        token = api.access_token.create(grants={"tts": True}, expires_in=60).token
    with Cartesia(**options(keyed_server, api_key=None, token=token)) as page:
        with page.tts.websocket_connect() as socket:
            context = socket.context(**SETTINGS)
            context.push(TEXT, continue_=False)
            assert is_speech(sound(list(context.receive())))
        with pytest.raises(cartesia.AuthenticationError):
            page.access_token.create(expires_in=60)


def test_a_busy_server_says_so(busy_server: Server) -> None:
    with Cartesia(**options(busy_server)) as api:
        with pytest.raises(cartesia.InternalServerError):
            api.tts.generate(transcript=TEXT, **SETTINGS)
        with pytest.raises(websockets.InvalidStatus) as caught, api.tts.websocket_connect():
            pass
        assert caught.value.response.status_code == 503


def test_dictionaries_are_made_read_changed_spoken_with_and_deleted(api: Cartesia) -> None:
    item: Any = {
        "text": "tide",
        "alias": "tide of a morning that was coming in slowly from the sea",
    }
    made = api.pronunciation_dicts.create(name="Sea words", items=[item])
    assert (made.name, made.items[0].text) == ("Sea words", "tide")
    assert api.pronunciation_dicts.retrieve(made.id) == made
    assert made.id in [each.id for each in api.pronunciation_dicts.list()]
    asked: dict[str, Any] = SETTINGS | {"transcript": "The tide."}
    plain = api.tts.generate(**asked).read()
    said = api.tts.generate(**asked, pronunciation_dict_id=made.id).read()
    assert len(said) > 2 * len(plain), "what is said is four times as long"
    with api.tts.websocket_connect() as socket:
        context = socket.context(**SETTINGS, pronunciation_dict_id=made.id)
        context.push("The tide.")
        context.no_more_inputs()
        assert len(sound(list(context.receive()))) > 2 * len(plain)
    changed = api.pronunciation_dicts.update(made.id, items=[item | {"alias": "sea"}])
    assert (changed.name, changed.items[0].alias) == ("Sea words", "sea")
    api.pronunciation_dicts.delete(made.id)
    with pytest.raises(cartesia.NotFoundError):
        api.tts.generate(**asked, pronunciation_dict_id=made.id)
