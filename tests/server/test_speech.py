"""SpeechStream: a turn of its own, for owners that are no session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.speech import SpeechError

FRAME_BYTES = 3_840


def open_speech(server: Any, name: str = "s1", **settings: Any) -> Any:
    return server.running.front.open_speech(name, SessionSettings(**settings), "test")


async def rest(stream: Any) -> bytes:
    pcm = b""
    while (packet := await stream.next(5)) is not None:
        assert 0 < len(packet) <= 4_096
        pcm += packet
    return pcm


async def test_deltas_go_in_and_packets_come_out_before_the_text_is_complete(speech: Any) -> None:
    async with speech() as server:
        stream = open_speech(server)
        stream.feed("Hello there, ")
        first = await stream.next(5)
        assert first
        stream.feed("you.")
        stream.end()
        assert len(first + await rest(stream)) == len("Hello there, you.") * FRAME_BYTES
        assert stream.text_tokens == 17 and stream.reason == "complete"
        assert await stream.next() is None, "and again"
        stream.close()
        await server.settled()


async def test_packets_that_lie_ready_are_taken_each_in_a_round_of_its_own(speech: Any) -> None:
    """Encoding all of them in one would keep the packets of others from them."""
    async with speech() as server:
        stream = open_speech(server)
        stream.feed("A text.")
        stream.end()
        await server.settled_engine()
        rounds, packets, going = 0, 0, True

        async def count() -> None:
            nonlocal rounds
            while going:
                rounds += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        while await stream.next(5) is not None:
            packets += 1
        going = False
        await counting
        stream.close()
        assert packets > 5 and rounds >= packets


async def test_text_that_the_filter_holds_is_released_by_the_clock(speech: Any) -> None:
    async with speech() as server:
        stream = open_speech(server)
        stream.feed("Hi [")  # the beginning of a link, perhaps
        held = stream.text_tokens
        async with asyncio.timeout(3):
            while stream.text_tokens == held:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        stream.close()


async def test_streams_of_one_owner_speak_at_once(speech: Any) -> None:
    async with speech() as server:
        streams = [open_speech(server, f"s{n}", voice=v) for n, v in enumerate(("alto", "bass"))]
        for stream in streams:
            stream.feed("Both of us.")
            stream.end()
        alto, bass = await asyncio.gather(*map(rest, streams))
        assert len(alto) == len(bass) and alto != bass
        for stream in streams:
            stream.close()
        await server.settled()


async def test_a_stream_that_is_closed_early_is_counted_so_and_says_no_more(speech: Any) -> None:
    async with speech(engine=FakeEngineConfig(step_seconds=0.02)) as server:
        stream = open_speech(server)
        stream.feed("Rather a long text, this is.")
        await stream.next(5)
        waiting = asyncio.create_task(rest(stream))
        await asyncio.sleep(0.05)
        stream.close()
        stream.close()
        await waiting
        await server.settled()
        assert server.value("tts_turns_total", reason="closed") == 1
        assert server.value("tts_open_turns") == 0


async def test_nothing_to_speak_is_over_at_once(speech: Any) -> None:
    async with speech() as server:
        stream = open_speech(server)
        stream.feed("…")
        stream.end()
        assert await stream.next(1) is None
        stream.close()
        assert server.value("tts_turns_total", reason="complete") == 1


async def test_who_waits_is_told_why_it_ended(speech: Any) -> None:
    async with speech(engine=FakeEngineConfig(step_seconds=0.02)) as server:
        stream = open_speech(server)
        stream.feed("Some text.")
        await stream.next(5)
        stream.fail(TurnFailure("going_away", "bye", True))
        with pytest.raises(SpeechError, match="bye"):
            await stream.next(1)
        stream.close()
        await server.settled()
        assert server.value("tts_turns_total", reason="error") == 1
        assert server.value("tts_refused_total", reason="going_away") == 1


async def test_an_owner_that_takes_nothing_loses_the_stream(speech: Any) -> None:
    async with speech() as server:
        front = server.running.front
        front.max_outbox = lambda: 20_000
        stream = open_speech(server)
        stream.feed("A text of more than five frames.")
        stream.end()
        await server.settled_engine()
        with pytest.raises(SpeechError, match="wait for the client") as caught:
            await stream.next(1)
        assert caught.value.failure.code == "slow_reader"
        stream.close()


async def test_patience_has_an_end(speech: Any) -> None:
    async with speech() as server:
        stream = open_speech(server)
        with pytest.raises(TimeoutError):
            await stream.next(0.05)
        stream.feed("Now.")
        stream.end()
        assert len(await rest(stream)) == 4 * FRAME_BYTES, "nothing was lost by waiting"
        stream.close()


async def test_a_fault_in_one_stream_leaves_the_others_alone(
    speech: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with speech() as server:
        bad, good = open_speech(server, "bad"), open_speech(server, "good")
        monkeypatch.setattr(bad._turn, "audio", lambda event: 1 / 0)
        for stream in (bad, good):
            stream.feed("Me too.")
            stream.end()
        assert len(await rest(good)) == 7 * FRAME_BYTES
        with pytest.raises(SpeechError, match="fault of the server"):
            await rest(bad)
        bad.close()
        good.close()
        await server.settled()


async def test_what_the_checkpoint_cannot_do_takes_no_place(speech: Any) -> None:
    async with speech() as server:
        with pytest.raises(RequestError, match="unknown voice"):
            open_speech(server, voice="nobody")
        with pytest.raises(RequestError, match="lead_ms"):
            open_speech(server, lead_ms=3_600_000)
        assert server.running.front.sessions == 0
