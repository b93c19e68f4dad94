"""ElevenLabs' socket of one text: what goes in, what comes out, and what is wrong with either."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import websockets

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.dialects.elevenlabs_messages import DEFAULT_FORMAT, HOLD_SECONDS, SETTLE_SECONDS
from realtime_tts.dialects.elevenlabs_socket import DEFAULT_ID, ContextsSocket
from realtime_tts.server.track import STALL_SECONDS
from tests.dialects.asking import SLOW, used_up
from tests.dialects.document import prose
from tests.dialects.elevens import alignments, eleven, sound_of
from tests.dialects.tones import FRAME
from tests.engine.faulty import Faults
from tests.server.speaking import speaking
from tests.server.talking import denied

TEXT = "Hello there, how are you?"
FIRST = {
    "text": " ",
    "try_trigger_generation": True,
    "voice_settings": None,
    "generation_config": {"chunk_length_schedule": [50]},
}


def test_the_figures_in_the_document_are_the_code_s() -> None:
    section = prose("ElevenLabs")
    limits, server = LimitsConfig(), ServerConfig()
    assert f"`{DEFAULT_FORMAT}` if left out" in section
    assert f"Without one it is `{DEFAULT_ID}`" in section
    assert f"pauses for {SETTLE_SECONDS} s" in section
    assert f"a pause of {HOLD_SECONDS:.0f} s" in section
    assert f"up to {ContextsSocket.max_contexts} contexts" in section
    assert f"at most {limits.max_text_chars:,} characters" in section
    assert f"for {limits.turn_idle_ms / 1000:.0f} s (`turn_idle_ms`)" in section
    assert f"({server.lead_seconds:.0f} s) ahead" in section
    assert f"up to {limits.max_lead_ms / 1000:.0f} s." in section
    assert f"more than {STALL_SECONDS} s" in section
    assert f"{ContextsSocket.idle_seconds / 60:.0f} minutes" in section


async def test_deltas_then_the_end_then_the_close() -> None:
    async with speaking() as server, eleven(server, multi=False) as client:
        commands = server.spy_on_commands()
        await client.send(**FIRST)
        for delta in ("Hel", "lo", " there, ", "how are", " you?"):
            await client.send(text=delta, try_trigger_generation=True)
        await client.send(text="")
        seen = await client.rest()
        assert len(sound_of(seen)) == len(TEXT) * FRAME
        assert seen[-1]["isFinal"] is True and not seen[-1]["audio"]
        assert not any(message["isFinal"] for message in seen[:-1])
        assert client.socket.close_code == 1000
        ids = [id for command in commands for id in getattr(command, "ids", ())]
        assert len(ids) == len(TEXT)
        await server.settled()


async def test_characters_have_times_that_go_on_from_message_to_message() -> None:
    text = "The quick brown fox jumps over the lazy dog."
    async with speaking() as server, eleven(server, multi=False) as client:
        await client.send(text=text)
        await client.send(text="")
        clock, heard, told, chars = 0, 0, 0, ""
        for message in await client.rest():
            heard += len(sound_of([message]))
            for one in alignments([message]):
                assert message["normalizedAlignment"] == one
                starts, lengths = one["charStartTimesMs"], one["charDurationsMs"]
                assert len(starts) == len(lengths) == len(one["chars"])
                assert starts == sorted(starts) and min(starts) >= 0 and min(lengths) >= 0
                chars += "".join(one["chars"])
                clock += starts[-1] + lengths[-1]  # as Pipecat counts
                assert clock <= heard / 48 + 1
                told += 1
        assert chars == text and told > 3
        assert clock == pytest.approx(heard / 48, abs=1)


async def test_a_flush_speaks_what_there_is_and_the_text_goes_on() -> None:
    async with speaking() as server, eleven(server, multi=False) as client:
        await client.send(text="Let me see", flush=True)
        heard = b""
        while len(heard) < len("Let me see") * FRAME:
            heard += sound_of([await client.next()])
        await client.send(text=" ")  # keeps it alive
        await client.send(text="Found it.")
        await client.send(text="")
        assert len(sound_of(await client.rest())) == len("Found it.") * FRAME


async def test_no_text_at_all_is_only_an_end() -> None:
    for first in (FIRST, None):
        async with speaking() as server, eleven(server, multi=False) as client:
            if first is not None:
                await client.send(**first)
            await client.send(text="")
            (only,) = await client.rest()
            assert only["isFinal"] is True and client.socket.close_code == 1000


async def test_without_text_it_ends_by_itself() -> None:
    limits = LimitsConfig(turn_idle_ms=100)
    async with speaking(ServerConfig(port=0, limits=limits)) as server:
        async with eleven(server, multi=False) as client:
            await client.send(**FIRST)
            seen = await client.rest()
            assert seen[-1]["isFinal"] is True and client.socket.close_code == 1000
        await server.settled()


async def test_text_after_the_end_is_refused_and_the_speech_goes_on() -> None:
    async with speaking(engine=SLOW) as server, eleven(server, multi=False) as client:
        await client.send(text=TEXT)
        await client.send(text="")
        await client.send(text=" ")
        await client.send(text="More.")
        seen = await client.rest()
        assert [message["error"] for message in seen if "error" in message] == ["invalid_request"]
        assert len(sound_of(seen)) == len(TEXT) * FRAME
        assert client.socket.close_code == 1000


# What cannot be taken ends the socket.


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"text": 5}, "text"),
        ({"text": "a" * 20_000}, "16384"),
        ({"text": "Hi", "flush": "yes"}, "flush"),
        ({"text": " ", "voice_settings": []}, "voice_settings"),
        ({"text": " ", "voice_settings": {"speed": "fast"}}, "voice_settings.speed"),
    ],
)
async def test_what_is_wrong_is_said(fields: dict[str, Any], names: str) -> None:
    async with speaking() as server:
        async with eleven(server, multi=False) as client:
            await client.send(**fields)
            (error,) = await client.rest()
            assert names in error["message"] and error["error"] and error["code"] == 1008
            assert client.socket.close_code == 1008
        await server.settled()


@pytest.mark.parametrize("multi", [False, True])
async def test_the_error_of_a_flood_has_the_code_of_the_close(multi: bool) -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(messages_per_second=1, message_burst=5))
    async with speaking(config) as server, eleven(server, multi=multi) as client:
        for _ in range(6):
            await client.send(text=" ")
        (error,) = await client.rest()
        assert (error["error"], error["code"]) == ("rate_limit_exceeded", 1008)
        assert client.socket.close_code == 1008


@pytest.mark.parametrize("raw", ["", "[]", "{", '"a"', "{" * 5_000, b"\x00", '{"text": 1e999}'])
async def test_garbage(raw: Any) -> None:
    async with speaking() as server, eleven(server, multi=False) as client:
        await client.socket.send(raw)
        (error,) = await client.rest()
        assert error["message"] and client.socket.close_code == 1008


@pytest.mark.parametrize(
    ("voice", "query", "names"),
    [
        ("nobody", "", "alto"),
        ("alto", "&output_format=pcm_s64be", "pcm_s64be"),
        ("alto", "&output_format=mp3_44100_999", "999"),
        ("alto", "&close_context=maybe", "close_context"),
        ("alto", "&seed=-1", "seed"),
        ("alto", "&seed=" + "9" * 5_000, "seed"),
    ],
)
@pytest.mark.parametrize("multi", [False, True])
async def test_an_address_that_cannot_be_served(
    voice: str, query: str, names: str, multi: bool
) -> None:
    async with speaking() as server:
        query = query.replace("output_format", "x=&output_format")
        path = f"/v1/text-to-speech/{voice}/{'multi-' if multi else ''}stream-input"
        url = f"ws://127.0.0.1:{server.port}{path}?a=b{query}"
        async with websockets.connect(url) as socket:
            await (await socket.ping())
            with pytest.raises(TimeoutError):  # a client may not be listening before it speaks
                await asyncio.wait_for(socket.recv(), 0.1)
            await socket.send(json.dumps({"text": " ", "context_id": "a"}))
            error = json.loads(await socket.recv())
            assert names in error["message"] and error["code"] == 1008
            assert error.get("contextId") == ("a" if multi else None)
            await socket.wait_closed()
            assert socket.close_code == 1008
            said = (socket.close_reason or "").partition(": ")[2]
            assert said and error["message"].startswith(said)


async def test_what_other_servers_have_is_accepted() -> None:
    query = (
        "&language_code=tlh&enable_ssml_parsing=false&enable_logging=true&inactivity_timeout=180"
        "&apply_text_normalization=auto&sync_alignment=true&auto_mode=false&seed=7&unheard=of"
        "&optimize_streaming_latency=3"
    )
    for voice in ("ALTO", "21m00Tcm4TlvDq8ikWAM"):
        async with speaking() as server, eleven(server, query, voice=voice, multi=False) as client:
            await client.send(
                text="Hello.",
                flush=None,
                unheard_of={"a": None},
                voice_settings={"stability": 0.5, "speed": None, "use_speaker_boost": False},
                pronunciation_dictionary_locators=[],
            )
            await client.send(text="")
            assert len(sound_of(await client.rest())) == len("Hello.") * FRAME


@pytest.mark.parametrize(
    ("name", "size"),
    [("pcm_8000", 16_000), ("pcm_44100", 88_200), ("ulaw_8000", 8_000), ("alaw_8000", 8_000)],
)
async def test_formats_of_samples(name: str, size: int) -> None:
    async with speaking() as server:
        url = f"ws://127.0.0.1:{server.port}/v1/text-to-speech/alto/stream-input"
        async with websockets.connect(f"{url}?output_format={name}") as socket:
            await socket.send(json.dumps({"text": TEXT}))
            await socket.send(json.dumps({"text": ""}))
            chunks = [json.loads(message)["audio"] async for message in socket]
            data = sound_of([{"audio": chunk} for chunk in chunks if chunk])
            assert len(data) == pytest.approx(size * len(TEXT) * 0.08, rel=0.01)
            assert name.startswith(("ulaw", "alaw")) or len(data) % 2 == 0


async def test_mp3_unless_something_else_is_asked_for() -> None:
    pytest.importorskip("av", reason="needs the extra codecs")
    async with speaking() as server:
        url = f"ws://127.0.0.1:{server.port}/v1/text-to-speech/alto/stream-input"
        async with websockets.connect(url) as socket:
            await socket.send(json.dumps({"text": TEXT}))
            await socket.send(json.dumps({"text": ""}))
            data = sound_of([json.loads(message) async for message in socket])
            assert data[0] == 0xFF and data[1] & 0xE0 == 0xE0  # the sync word of an MP3 frame
            seconds = len(TEXT) * 0.08
            assert len(data) == pytest.approx(16_000 * seconds, rel=0.1)


# Overload, failure, end, keys.


async def test_a_text_that_is_refused_in_the_middle_is_the_last_word() -> None:
    async with speaking(engine=SLOW) as server:
        async with eleven(server, multi=False) as client:
            await client.send(text="The beginning ")
            await client.until("audio")
            with used_up():
                await client.send(text="and the middle ")
                seen = await client.rest()
            assert seen[-1]["error"] == "too_many_concurrent_requests"
            assert client.socket.close_code == 1013
        await server.settled()


async def test_a_failure_of_the_engine_is_the_last_word() -> None:
    faults = Faults()
    async with speaking(engine=SLOW, faults=faults) as server:
        async with eleven(server, multi=False) as client:
            await client.send(text="A text that will fail in the middle. ")
            await client.until("audio")
            faults.numerics.update(server.engine._rows)
            seen = await client.rest()
            assert seen[-1]["message"] and seen[-1]["error"] and not seen[-1].get("isFinal")
            assert client.socket.close_code == 1011
        await server.settled()


KEY = "sesame-open-12345"


@pytest.mark.parametrize("multi", [False, True])
async def test_the_key_in_header_query_or_first_message(multi: bool) -> None:
    async with speaking(ServerConfig(port=0, api_keys=(KEY,))) as server:
        for query, headers, first in (
            ("", {"xi-api-key": KEY}, {}),
            ("", {"Authorization": f"Bearer {KEY}"}, {}),
            (f"&xi-api-key={KEY}", {}, {}),
            (f"&single_use_token={KEY}", {}, {}),
            ("", {}, {"xi_api_key": KEY}),
            ("", {}, {"xi-api-key": KEY}),
            ("", {}, {"authorization": f"Bearer {KEY}"}),
        ):
            async with eleven(server, query, multi=multi, additional_headers=headers) as client:
                await client.send(text="Hello. ", **first)
                await client.until("audio")
        wrong: tuple[dict[str, Any], ...] = ({}, {"xi_api_key": "wrong"}, {"authorization": 5})
        for first in wrong:
            async with eleven(server, voice="nobody", multi=multi) as client:
                await client.send(text="Hello. ", **first)
                (error,) = await client.rest()
                assert error["error"] == "invalid_api_key"
                assert "alto" not in error["message"]  # no word about voices to strangers
                assert client.socket.close_code == 1008
        response = await denied(
            eleven(server, multi=multi, additional_headers={"xi-api-key": "wrong"})
        )
        assert response.status_code == 401
        body = json.loads(response.body)
        assert body["detail"]["status"] == "invalid_api_key"


@pytest.mark.parametrize("rest", ["", "/multi-stream-input", "/stream-input"])
async def test_dialogues_are_not_here(rest: str) -> None:
    async with speaking() as server:
        url = f"ws://127.0.0.1:{server.port}/v1/text-to-dialogue{rest}?model_id=eleven_v3"
        response = await denied(websockets.connect(url))
        assert response.status_code == 404
        assert "eleven_flash_v2_5" in json.loads(response.body)["detail"]["message"]


async def test_who_shows_no_key_takes_no_place() -> None:
    """Silent sockets without a key leave the only place to one that has it."""
    limits = LimitsConfig(max_sessions=1)
    async with speaking(ServerConfig(port=0, api_keys=(KEY,), limits=limits)) as server:
        async with eleven(server), eleven(server), eleven(server) as late:
            with_key: dict[str, Any] = {"additional_headers": {"xi-api-key": KEY}}
            async with eleven(server, **with_key) as client:
                await client.send(text="Hello. ", flush=True)
                await client.until("audio")
                await late.send(text="Hello. ", xi_api_key=KEY)
                assert (await late.rest())[-1]["error"] == "too_many_concurrent_requests"
