"""The TTS for LiveKit Agents, as an agent uses it, against the demo voice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime_tts import RealtimeTTS
from realtime_tts.adapters.livekit import TTS
from tests.clients.livekit_rig import (
    DELTAS,
    ONCE,
    TEXT,
    Way,
    assert_same_audio,
    assert_well_formed,
    collected,
    read,
    say,
    seconds,
    until_audio,
)
from tests.clients.serving import Server
from tests.clients.wire import wire_to

SEED: dict[str, Any] = {"seed": 7, "layout": "streaming"}
_HALF_A_SECOND = 24_000  # bytes


async def spoken(server: Server, text: str, **options: Any) -> bytes:
    """The same speech by the client itself."""
    async with RealtimeTTS(server.websocket_url, **{**SEED, **options}) as client:
        return b"".join([packet async for packet in client.speak(text)])


async def test_deltas_become_one_segment_with_every_byte_the_server_sent(server: Server) -> None:
    async with TTS(server.url, **SEED) as speaker:
        metrics = collected(speaker, "metrics_collected")
        events = await say(speaker)
    assert_well_formed(events)
    assert_same_audio(events, await spoken(server, TEXT))
    (found,) = metrics
    assert found.characters_count == len(TEXT)
    assert found.audio_duration == pytest.approx(seconds(events))
    assert 0 < found.ttfb <= found.duration
    assert found.streamed and not found.cancelled and not found.connection_reused
    assert found.request_id == events[0].request_id and found.segment_id == events[0].segment_id
    assert found.metadata.model_name == speaker.model == "demo"
    assert found.metadata.model_provider == "realtime-tts"


@pytest.mark.parametrize("way", [say, read])
async def test_speech_goes_on_when_its_socket_is_lost(server: Server, way: Way) -> None:
    async with wire_to(server.url) as wire, TTS(wire.url, **SEED, lead_ms=500) as speaker:
        errors, metrics = collected(speaker, "error"), collected(speaker, "metrics_collected")
        wire.cut_after = _HALF_A_SECOND
        events = await way(speaker, DELTAS if way is say else TEXT, ONCE)
    assert wire.connections == 2 and not errors and len(metrics) == 1
    assert_well_formed(events)
    assert_same_audio(events, await spoken(server, TEXT))


async def test_a_whole_text_is_spoken_and_measured(server: Server) -> None:
    async with TTS(server.url, **SEED) as speaker:
        metrics = collected(speaker, "metrics_collected")
        events = await read(speaker, TEXT)
    assert_well_formed(events)
    assert_same_audio(events, await spoken(server, TEXT))
    (found,) = metrics
    assert found.characters_count == len(TEXT) and not found.streamed
    assert found.audio_duration == pytest.approx(seconds(events))
    assert 0 < found.ttfb <= found.duration


async def test_audio_comes_before_the_text_ends(server: Server) -> None:
    async with TTS(server.url) as speaker, speaker.stream(conn_options=ONCE) as stream:
        stream.push_text("The museum is open until six, ")
        first = await until_audio(stream)
        assert not first.is_final
        stream.push_text("and the café until nine.")
        stream.end_input()
        rest = [event async for event in stream]
    assert_well_formed([first, *rest])


async def test_a_flush_ends_the_reply_while_the_input_stays_open(server: Server) -> None:
    async with TTS(server.url) as speaker, speaker.stream(conn_options=ONCE) as stream:
        stream.flush()  # before any text: nothing to end
        stream.push_text(TEXT)
        stream.flush()
        events = [event async for event in stream]
    assert_well_formed(events)
    assert seconds(events) > 1.0


async def test_a_stream_without_text_is_silent_and_no_failure(server: Server) -> None:
    async with TTS(server.url) as speaker:
        errors = collected(speaker, "error")
        metrics = collected(speaker, "metrics_collected")
        assert await say(speaker, []) == []
    assert not errors and not metrics


@pytest.mark.parametrize("way", [say, read])
async def test_text_with_nothing_to_speak_is_a_little_silence_and_no_failure(
    server: Server, way: Way
) -> None:
    async with TTS(server.url) as speaker:
        errors = collected(speaker, "error")
        events = await way(speaker, "🙂")
    assert_well_formed(events)
    assert not errors
    assert_same_audio(events, bytes(4_800))


async def test_streams_one_after_another_share_a_session(server: Server) -> None:
    await asyncio.to_thread(server.until, "tts_sessions", 0)  # of the tests before
    async with TTS(server.url) as speaker:
        metrics = collected(speaker, "metrics_collected")
        for _ in range(3):
            assert_well_formed(await say(speaker, ["One moment."]))
        assert server.value("tts_sessions") == 1
    assert [found.connection_reused for found in metrics] == [False, True, True]
    assert metrics[0].acquire_time > 0 and metrics[1].acquire_time == 0
    server.until("tts_sessions", 0)  # closed with the TTS


async def test_streams_at_the_same_time_do_not_wait_for_each_other(server: Server) -> None:
    async with TTS(server.url) as speaker, speaker.stream(conn_options=ONCE) as waiting:
        waiting.push_text("Let me see ")
        await until_audio(waiting)
        assert_well_formed(await say(speaker))  # while the first still has the air
        waiting.push_text("what I can do.")
        waiting.end_input()
        assert [event async for event in waiting][-1].is_final


async def test_prewarm_makes_the_session_of_the_first_stream(server: Server) -> None:
    await asyncio.to_thread(server.until, "tts_sessions", 0)  # of the tests before
    async with TTS(server.url) as speaker:
        metrics = collected(speaker, "metrics_collected")
        speaker.prewarm()
        await say(speaker, ["Hello."])
        assert server.value("tts_sessions") == 1
    assert [found.connection_reused for found in metrics] == [True]


async def test_new_options_count_for_the_next_stream_on_the_same_session(server: Server) -> None:
    async with TTS(server.url, voice="ava", **SEED) as speaker:
        metrics = collected(speaker, "metrics_collected")
        ava = await say(speaker)
        speaker.update_options(voice="ray")
        ray = await say(speaker)
        assert metrics[-1].connection_reused
        speaker.update_options(voice=None)  # again what the server prefers
        neither = await say(speaker)
        assert metrics[-1].connection_reused
    assert_same_audio(ava, await spoken(server, TEXT, voice="ava"))
    assert_same_audio(ray, await spoken(server, TEXT, voice="ray"))
    assert_same_audio(neither, await spoken(server, TEXT))


async def test_a_closed_tts_can_be_used_again(server: Server) -> None:
    speaker = TTS(server.url)
    await say(speaker, ["Hello."])
    await speaker.aclose()
    assert_well_formed(await say(speaker, ["Hello again."]))
    await speaker.aclose()


async def test_an_api_key_lets_in(keyed_server: Server) -> None:
    async with TTS(keyed_server.url, api_key=keyed_server.api_key) as speaker:
        assert_well_formed(await say(speaker, ["Hello."]))


async def test_many_small_deltas_arrive_whole(server: Server) -> None:
    async with TTS(server.url, **SEED) as speaker:
        events = await asyncio.wait_for(say(speaker, TEXT), 120)  # a character at a time
    assert_same_audio(events, await spoken(server, TEXT))
    assert "".join(DELTAS) == TEXT
