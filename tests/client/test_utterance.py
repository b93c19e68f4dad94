"""Text pushed in, packets out, over more than one turn where one is not enough."""

import asyncio
import time
from typing import Any

import pytest

from realtime_tts import RealtimeTTS
from realtime_tts.adapters.utterance import Utterance
from realtime_tts.errors import OverloadedError, TurnError
from realtime_tts.protocol.messages import (
    ErrorMessage,
    Interrupt,
    Played,
    Text,
    TurnEnd,
    TurnWords,
    Word,
)
from realtime_tts.protocol.parsing import decode_client_message
from tests.client.conftest import StandIn
from tests.waiting import SECONDS


async def fail(peer: Any, turn_id: str) -> None:
    code, said = "engine_restarted", "the engine ended: send the text again"
    await peer.send(
        ErrorMessage(code=code, message=said, fatal=False, retryable=True, turn_id=turn_id)
    )
    await peer.done(turn_id, "error")


async def text_of(peer: Any, turn_id: str) -> Text:
    """The next text of this turn, past what still came for the one before."""
    while True:
        message = decode_client_message(await peer.socket.recv()).message
        if getattr(message, "turn_id", None) == turn_id:
            break
    assert isinstance(message, Text)
    return message


async def test_what_nobody_heard_is_begun_again_with_all_of_its_text(stand_in: StandIn) -> None:
    utterance = Utterance()

    async def script(peer: Any) -> None:
        await peer.ready()
        assert (await peer.receive(Text)).text == "The ti"
        await fail(peer, "turn-1")
        utterance.add("de.")
        utterance.end()
        assert (await text_of(peer, "turn-2")).text == "The tide."
        await peer.receive(TurnEnd)
        await peer.speak("turn-2", 100)
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        utterance.add("The ti")
        assert [len(packet) async for packet in utterance.packets(tts.speak)] == [200]
    assert utterance.complete


async def test_what_was_heard_is_not_begun_again(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.started("turn-1")
        await peer.audio(100)
        await fail(peer, "turn-1")
        await peer.until_closed()

    utterance, heard = Utterance(), 0
    utterance.add("The tide.")
    async with RealtimeTTS(await stand_in.start(script)) as tts:
        with pytest.raises(TurnError, match="send the text again"):
            async for packet in utterance.packets(tts.speak):
                heard += len(packet)
    assert heard == 200
    assert not utterance.complete


async def test_the_third_failure_is_the_last(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        for number in (1, 2, 3):
            await text_of(peer, f"turn-{number}")
            await fail(peer, f"turn-{number}")
        await peer.until_closed()

    utterance = Utterance()
    utterance.add("The tide.")
    async with RealtimeTTS(await stand_in.start(script)) as tts:
        with pytest.raises(TurnError):
            async for _ in utterance.packets(tts.speak):
                pass


async def test_nobody_waits_until_a_key_may_speak_again_tomorrow(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.send(
            ErrorMessage(
                code="key_limit_reached",
                message="this key may have 10 characters a day",
                fatal=False,
                retryable=True,
                retry_after_ms=60_000_000,
                turn_id="turn-1",
            )
        )
        await peer.done("turn-1", "error")
        await peer.until_closed()

    utterance = Utterance()
    utterance.add("The tide.")
    async with RealtimeTTS(await stand_in.start(script)) as tts:
        with pytest.raises(OverloadedError, match="characters a day") as refused:
            async for _ in utterance.packets(tts.speak):
                pass
    assert refused.value.retry_after == 60_000


async def test_an_utterance_that_is_stopped_does_not_wait_for_room(stand_in: StandIn) -> None:
    refused = asyncio.Event()

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        full = ErrorMessage(
            code="overloaded",
            message="no room",
            fatal=False,
            retryable=True,
            retry_after_ms=20_000,
            turn_id="turn-1",
        )
        await peer.send(full)
        await peer.done("turn-1", "error")
        refused.set()
        await peer.until_closed()

    utterance = Utterance()
    utterance.add("The tide.")

    async def listen() -> list[bytes]:
        return [packet async for packet in utterance.packets(tts.speak)]

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        listening = asyncio.create_task(listen())
        await refused.wait()
        await asyncio.sleep(0.1)
        assert await utterance.interrupt() is None
        assert await listening == []
    assert not utterance.complete


@pytest.mark.parametrize("reason", ["idle", "complete"])
async def test_a_turn_that_is_over_before_its_text_is_followed_by_one_with_the_rest(
    stand_in: StandIn, reason: str
) -> None:
    """Its text paused for too long, or the model ended by itself."""
    utterance = Utterance()

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.speak("turn-1", 100, reason=reason, text_chars=8)
        utterance.add("the rest.")
        utterance.end()
        assert (await text_of(peer, "turn-2")).text == "the rest."
        await peer.receive(TurnEnd)
        await peer.speak("turn-2", 50)
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        utterance.add("Wait... ")
        assert [len(packet) async for packet in utterance.packets(tts.speak)] == [200, 100]


async def test_an_utterance_stopped_before_it_begins_says_nothing(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        assert await peer.until_closed() == []

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        utterance = Utterance()
        utterance.add("The tide.")
        assert await utterance.interrupt() is None
        assert [packet async for packet in utterance.packets(tts.speak)] == []
        async with asyncio.timeout(SECONDS):
            await utterance.wait_begun()
            await utterance.wait_ended()


async def test_words_count_from_the_first_sound_of_all_its_turns(stand_in: StandIn) -> None:
    utterance = Utterance()

    async def script(peer: Any) -> None:
        await peer.ready()
        assert (await peer.receive(Text)).text == "One."
        for number, text in ((1, "One."), (2, " Two.")):
            turn_id = f"turn-{number}"
            if number == 2:
                utterance.add(text)
                utterance.end()
                assert (await text_of(peer, turn_id)).text == text
            await peer.started(turn_id)
            await peer.audio(2400)
            word = Word(text=text, start_ms=10.0, end_ms=90.0)
            await peer.send(TurnWords(turn_id=turn_id, words=(word,)))
            reason = "idle" if number == 1 else "complete"
            await peer.done(turn_id, reason, samples=2400, text_chars=len(text))
        await peer.until_closed()

    utterance.add("One.")
    async with RealtimeTTS(await stand_in.start(script)) as tts:
        packets = 0
        words: list[Word] = []
        async for _ in utterance.packets(tts.speak):
            packets += 1
            words += utterance.take_words()
        words += utterance.take_words()
    assert packets == 2
    assert [(word.text, word.start_ms, word.end_ms) for word in words] == [
        ("One.", 10.0, 90.0),
        (" Two.", 110.0, 190.0),
    ]
    assert utterance.take_words() == []


async def test_the_server_is_told_how_far_its_listener_is(stand_in: StandIn) -> None:
    """Who plays the sound gave it late, so less was heard than the server would think."""
    utterance, told = Utterance(), asyncio.Event()

    async def script(peer: Any) -> None:
        await peer.ready()
        assert (await peer.receive(Text)).text == "One."
        await peer.started("turn-1")
        await peer.audio(24_000)
        reported = await peer.receive(Played)
        assert reported.turn_id == "turn-1"
        assert reported.played_ms == pytest.approx(400, abs=80)
        told.set()
        cut = await peer.receive(Interrupt)
        assert cut.played_ms == pytest.approx(400, abs=80)
        await peer.interrupted("turn-1", text_spoken="", text_remaining="One.")
        await peer.done("turn-1", "interrupted")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        await utterance.report_played()  # nothing to tell yet
        utterance.add("One.")
        packets = utterance.packets(tts.speak)
        await anext(packets)
        await utterance.report_played()  # and nobody plays it
        utterance.playback.give(1.0, time.monotonic() - 0.4)
        await utterance.report_played()
        await told.wait()
        report = await utterance.interrupt()
        await packets.aclose()
    assert report is not None
    assert report.text_remaining == "One."


async def test_a_position_in_the_last_turn_counts_after_its_end(stand_in: StandIn) -> None:
    utterance = Utterance()

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.speak("turn-1", 24_000, text_chars=4)
        cut = await peer.receive(Interrupt)
        assert cut.played_ms == pytest.approx(400, abs=80)
        await peer.interrupted("turn-1", text_spoken="On", text_remaining="e.")
        await peer.until_closed()

    utterance.add("One.")
    async with RealtimeTTS(await stand_in.start(script)) as tts:
        packets = utterance.packets(tts.speak)
        await anext(packets)
        utterance.end()
        assert [packet async for packet in packets] == []
        utterance.playback.give(1.0, time.monotonic() - 0.4)
        report = await utterance.interrupt()
    assert report is not None and report.text_remaining == "e."


async def test_a_position_counts_from_the_turn_that_is_told_it(stand_in: StandIn) -> None:
    utterance = Utterance()

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.speak("turn-1", 24_000, reason="idle", text_chars=4)
        utterance.add(" Two.")
        assert (await text_of(peer, "turn-2")).text == " Two."
        await peer.started("turn-2")
        await peer.audio(24_000)
        reported = await peer.receive(Played)
        assert reported.turn_id == "turn-2"
        assert reported.played_ms == pytest.approx(500, abs=80)
        await peer.until_closed()

    utterance.add("One.")
    async with RealtimeTTS(await stand_in.start(script)) as tts:
        packets = utterance.packets(tts.speak)
        for _ in range(2):
            await anext(packets)
        utterance.playback.give(2.0, time.monotonic() - 1.5)
        await utterance.report_played()
        await packets.aclose()


async def test_whoever_stops_the_turn_first_says_what_was_heard(stand_in: StandIn) -> None:
    """A packet that comes behind the stop ends the loop, before the interrupt is sent."""
    utterance, stopped = Utterance(), asyncio.Event()

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.started("turn-1")
        await peer.audio(24_000)
        await stopped.wait()
        await peer.audio(2_400)
        await peer.receive(TurnEnd)
        cut = await peer.receive(Interrupt)
        assert cut.played_ms == pytest.approx(400, abs=80)
        await peer.interrupted("turn-1", text_spoken="", text_remaining="One.")
        await peer.done("turn-1", "interrupted")
        later = await peer.until_closed()
        assert [message for message in later if message != cut] == []

    utterance.add("One.")
    async with RealtimeTTS(await stand_in.start(script)) as tts:
        packets = utterance.packets(tts.speak)
        await anext(packets)
        utterance.playback.give(1.0, time.monotonic() - 0.4)
        utterance.stop()
        stopped.set()
        assert [packet async for packet in packets] == []
        await asyncio.sleep(0.05)
        report = await utterance.interrupt()
    assert report is not None
    assert report.text_remaining == "One."
