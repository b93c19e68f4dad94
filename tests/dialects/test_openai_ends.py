"""How speech for OpenAI's client ends early: refusals, failures, hang-ups, and the server's end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from tests.dialects.asking import LONG, SECONDS, SLOW, TEXT, client, fail_midway, openai, speech_of
from tests.engine.faulty import Faults
from tests.server.speaking import speaking
from tests.waiting import until
from tts_scheduler import SchedulerConfig

# Too much, and gone.


async def test_an_engine_that_is_full_says_when_to_come_back() -> None:
    scheduler = SchedulerConfig(slots=1, max_queue=1, queue_timeout=0.1)
    async with speaking(engine=SLOW, scheduler=scheduler) as server:
        first = asyncio.create_task(speech_of(server, LONG, response_format="pcm"))
        await until(lambda: server.engine.open_utterances)
        with pytest.raises(openai.InternalServerError) as caught:
            await speech_of(server)
        error = caught.value
        assert (error.code, error.type) == ("overloaded", "server_error")
        assert int(error.response.headers["retry-after"]) >= 1
        assert server.value("tts_refused_total", reason="overloaded") == 1
        assert len((await first).content) > 0
        await server.settled()


async def test_streams_take_places_among_the_sessions() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=1))
    async with speaking(config, engine=SLOW) as server:
        async with server.talk():
            with pytest.raises(openai.InternalServerError) as caught:
                await speech_of(server)
            assert caught.value.code == "too_many_sessions"
            assert int(caught.value.response.headers["retry-after"]) >= 1
        await server.settled()
        first = asyncio.create_task(speech_of(server, LONG, response_format="pcm"))
        await until(lambda: server.running.front.sessions)
        assert await server.status("websocket", "/v1/tts") == 503
        await first


async def test_who_hangs_up_while_waiting_for_a_slot_frees_the_place() -> None:
    scheduler = SchedulerConfig(slots=1, max_queue=4, queue_timeout=30)
    async with speaking(engine=SLOW, scheduler=scheduler) as server:
        first = asyncio.create_task(speech_of(server, LONG, response_format="pcm"))
        await until(lambda: server.engine.open_utterances)
        second = asyncio.create_task(speech_of(server))
        await until(lambda: server.running.front.sessions == 2)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        await until(lambda: server.running.front.sessions == 1)
        assert not first.done()
        await first
        await server.settled()


async def test_a_failure_before_the_first_sound_has_a_status() -> None:
    faults = Faults()

    def explode(plan: Any) -> None:
        raise RuntimeError("injected")

    async with speaking(faults=faults) as server:
        faults.before_step = explode
        with pytest.raises(openai.InternalServerError) as caught:
            await speech_of(server)
        assert caught.value.status_code in (500, 503)
        assert caught.value.type == "server_error"


async def test_a_failure_among_events_is_an_event_and_cuts_the_answer_short() -> None:
    async with speaking(engine=SLOW) as server, client(server) as api:
        streaming = api.audio.speech.with_streaming_response
        lines = []
        with pytest.raises(Exception, match="(?i)incomplete|peer closed|reset|read"):
            async with streaming.create(
                model="tts-1", voice="alto", input=LONG, response_format="pcm", stream_format="sse"
            ) as answer:
                await fail_midway(server)
                async for line in answer.iter_lines():
                    lines += [line] if line else []
        last = json.loads(lines[-1].removeprefix("data: "))
        assert last["type"] == "error" and last["error"]["code"] == "numerics"


async def test_a_fault_of_ours_is_a_500_in_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    async with speaking() as server:
        monkeypatch.setattr(
            "realtime_tts.dialects.openai.our_voice", lambda *_: (_ for _ in ()).throw(ValueError())
        )
        with pytest.raises(openai.InternalServerError) as caught:
            await speech_of(server)
        assert caught.value.code == "internal" and caught.value.status_code == 500
        await server.settled()


# The end of the server.


async def test_a_drain_lets_speech_finish_and_takes_no_more() -> None:
    async with speaking(engine=SLOW) as server:
        front = server.running.front
        first = asyncio.create_task(speech_of(server, response_format="pcm"))
        await until(lambda: front.sessions)
        front.drain()
        with pytest.raises(openai.InternalServerError) as caught:
            await speech_of(server)
        assert caught.value.status_code == 503
        assert int(caught.value.response.headers["retry-after"]) >= 1
        assert len((await first).content) == round(SECONDS * 24_000) * 2


async def test_the_end_of_a_drain_cuts_what_still_speaks() -> None:
    async with speaking(engine=SLOW) as server:
        front = server.running.front
        first = asyncio.create_task(speech_of(server, LONG, response_format="pcm"))
        await until(lambda: server.value("tts_packets_total"))
        front.end_sessions()
        with pytest.raises(openai.APIConnectionError):
            await first
        await server.settled()


async def test_metrics_count_speech_as_turns() -> None:
    async with speaking() as server:
        await speech_of(server, response_format="pcm")
        await server.settled()
        assert server.value("tts_turns_total", reason="complete") == 1
        assert server.value("tts_audio_seconds_total") == pytest.approx(SECONDS)
        assert server.value("tts_ttfa_seconds_count") == 1
        assert server.value("tts_text_chars_total") == len(TEXT)
