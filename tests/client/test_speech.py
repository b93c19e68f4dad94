import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime_tts import RealtimeTTS
from realtime_tts.errors import ClientError, ConnectionLost
from realtime_tts.protocol.messages import Interrupt, Text, TurnEnd
from tests.client.conftest import StandIn, left_by_cancelling
from tests.client.reports import interrupted
from tests.waiting import SECONDS


async def echo_script(peer: Any) -> None:
    """A packet for every delta; takes interrupts; never runs out of turns."""
    await peer.ready()
    started = set()
    while True:
        message = await peer.receive(object)
        if isinstance(message, Text) and message.text:
            if message.turn_id not in started:
                started.add(message.turn_id)
                await peer.started(message.turn_id)
            await peer.audio(len(message.text))
        if isinstance(message, Interrupt):
            await peer.interrupted(message.turn_id, text_spoken="heard", text_remaining="rest")
            await peer.done(message.turn_id, "interrupted")
        elif isinstance(message, TurnEnd) or (isinstance(message, Text) and message.end):
            await peer.done(message.turn_id)


async def test_a_string_is_spoken_whole(stand_in: StandIn) -> None:
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        speech = tts.speak("Hello there.")
        assert [len(packet) // 2 async for packet in speech] == [12]
        assert speech.result is not None and speech.result.reason == "complete"
        assert speech.turn is not None and speech.turn.text == "Hello there."


async def test_any_iterable_of_deltas_is_spoken(stand_in: StandIn) -> None:
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        assert [len(packet) // 2 async for packet in tts.speak(["a", "bc", "", "def"])] == [1, 2, 3]
        assert [packet async for packet in tts.speak([])] == []


async def test_audio_comes_while_text_is_still_being_written(stand_in: StandIn) -> None:
    heard = asyncio.Event()

    async def deltas() -> AsyncIterator[str]:
        yield "first"
        await heard.wait()  # would wait for ever if packets came only at the end
        yield "second!"

    sizes = []
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        async for packet in tts.speak(deltas()):
            sizes.append(len(packet) // 2)
            heard.set()
    assert sizes == [5, 7]


class Source:
    """Deltas for ever; knows whether it was closed."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def deltas(self) -> AsyncIterator[str]:
        try:
            while True:
                yield "delta"
                await asyncio.sleep(0.001)
        finally:
            self.closed.set()


async def test_leaving_the_loop_interrupts_the_turn_and_closes_the_source(
    stand_in: StandIn,
) -> None:
    source = Source()
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        speech = tts.speak(source.deltas())
        async for _ in speech:
            break
        await source.closed.wait()
        assert speech.turn is not None
        await speech.turn._inbox.wait_over()
        assert speech.interrupted == interrupted(speech.turn.turn_id, 0, 0.0, "heard", "rest")
        # The session goes on, and nothing of the old turn is in the new one.
        assert [len(packet) // 2 async for packet in tts.speak("Next.")] == [5]


async def test_a_cancelled_listener_interrupts_the_turn(stand_in: StandIn) -> None:
    source = Source()
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        speech = tts.speak(source.deltas())
        await left_by_cancelling(speech)
        assert source.closed.is_set()
        assert speech.turn is not None
        await speech.turn._inbox.wait_over()
        assert speech.result is not None and speech.result.reason == "interrupted"
        assert [len(packet) // 2 async for packet in tts.speak("Next.")] == [5]


async def test_an_error_of_the_source_comes_out_as_it_is_and_stops_the_speech(
    stand_in: StandIn,
) -> None:
    async def deltas() -> AsyncIterator[str]:
        yield "half a sen"
        raise LookupError("the language model has gone")

    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        speech = tts.speak(deltas())
        with pytest.raises(LookupError, match="the language model has gone"):
            async for _ in speech:
                pass
        assert speech.turn is not None
        assert speech.turn.over
        # The server has spoken the old turn to its end before it answers the next one.
        assert [len(packet) // 2 async for packet in tts.speak("Next.")] == [5]
        assert speech.result is not None and speech.result.reason == "interrupted"


async def test_an_error_before_the_first_delta_needs_no_turn_at_the_server(
    stand_in: StandIn,
) -> None:
    async def deltas() -> AsyncIterator[str]:
        raise LookupError("no model")
        yield ""

    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        with pytest.raises(LookupError, match="no model"):
            async for _ in tts.speak(deltas()):
                pass


async def test_a_source_whose_own_task_was_cancelled_stops_the_speech(stand_in: StandIn) -> None:
    answering = asyncio.create_task(asyncio.sleep(60))  # the language model

    async def deltas() -> AsyncIterator[str]:
        yield "half a sen"
        await answering

    async with RealtimeTTS(await stand_in.start(echo_script)) as tts, asyncio.timeout(SECONDS):
        speech = tts.speak(deltas())
        with pytest.raises(ClientError, match="the text source was cancelled"):
            async for _ in speech:
                answering.cancel()
        assert [len(packet) // 2 async for packet in tts.speak("Next.")] == [5]
        assert speech.result is not None and speech.result.reason == "interrupted"


async def test_bytes_are_no_text(stand_in: StandIn) -> None:
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        with pytest.raises(ClientError, match="a text delta is a string, found bytes"):
            async for _ in tts.speak([b"Hello."]):  # type: ignore[list-item]
                pass


async def test_another_task_can_interrupt_and_the_loop_ends_quietly(stand_in: StandIn) -> None:
    source = Source()
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        speech = tts.speak(source.deltas())
        reports: list[asyncio.Task[Any]] = []
        async for _ in speech:
            if not reports:
                reports.append(asyncio.create_task(speech.interrupt(played_ms=5)))
        assert (await reports[0]).text_spoken == "heard"
        assert source.closed.is_set()


async def test_an_interrupt_before_the_first_packet_is_asked_for_speaks_nothing(
    stand_in: StandIn,
) -> None:
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        speech = tts.speak("Hello.")
        await speech.interrupt()
        assert [packet async for packet in speech] == []


async def test_a_speech_can_be_listened_to_once(stand_in: StandIn) -> None:
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        speech = tts.speak("Hello.")
        assert len([packet async for packet in speech]) == 1
        with pytest.raises(ClientError, match="once"):
            aiter(speech)


async def test_a_lost_connection_ends_the_loop_and_the_source(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.started("turn-1")
        await peer.audio(100)
        peer.socket.transport.abort()

    source = Source()
    async with RealtimeTTS(await stand_in.start(script)) as tts:
        with pytest.raises(ConnectionLost):
            async for packet in tts.speak(source.deltas()):
                assert len(packet) == 200
        assert source.closed.is_set()


async def test_no_task_is_left_behind(stand_in: StandIn) -> None:
    async with RealtimeTTS(await stand_in.start(echo_script)) as tts:
        before = asyncio.all_tasks()
        for _ in range(5):
            async for _packet in tts.speak(Source().deltas()):
                break
            assert len([packet async for packet in tts.speak("Hello.")]) == 1
        gc.collect()
        await asyncio.sleep(0.05)
        assert asyncio.all_tasks() == before
