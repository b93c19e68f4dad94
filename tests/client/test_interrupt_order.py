"""An interrupt is sent before everything that waits, but not before the turn it is about."""

import asyncio
from typing import Any

import pytest

from realtime_tts import RealtimeTTS, Turn
from realtime_tts.protocol.messages import ErrorMessage, Interrupt, SessionStart, Text
from realtime_tts.protocol.settings import Limits
from tests.client.conftest import StandIn
from tests.client.reports import interrupted
from tests.waiting import SECONDS

SLOW = Limits(messages_per_second=10, message_burst=2)
"""One message goes at once, and the next after 0.1 s."""


async def waiting_turn(tts: RealtimeTTS) -> tuple[Turn, asyncio.Task[None]]:
    """A turn whose first text waits behind that of another turn, and what sends it."""
    first, turn = await tts.turn(), await tts.turn()
    await first.send("Good")
    sending = asyncio.create_task(turn.send("Hello."))
    await asyncio.sleep(0.01)
    return turn, sending


@pytest.mark.parametrize("abandoned", [False, True])
async def test_an_interrupt_does_not_overtake_the_first_text(
    stand_in: StandIn, abandoned: bool
) -> None:
    async def script(peer: Any) -> None:
        await peer.ready(SLOW)
        assert (await peer.receive(Text)).turn_id == "turn-1"
        assert (await peer.receive(Text)).turn_id == "turn-2"
        assert (await peer.receive(Interrupt)).turn_id == "turn-2"
        await peer.interrupted("turn-2", text_remaining="Hello.")
        await peer.done("turn-2", "interrupted")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script), reply_timeout=SECONDS) as tts:
        turn, sending = await waiting_turn(tts)
        if abandoned:
            turn.abandon()
        assert await turn.interrupt() == interrupted("turn-2", 0, 0.0, "", "Hello.")
        await sending


async def test_an_interrupt_whose_task_is_cancelled_still_reaches_the_server(
    stand_in: StandIn,
) -> None:
    silent = asyncio.Event()

    async def script(peer: Any) -> None:
        await peer.ready(SLOW)
        await peer.receive(Text)
        assert (await peer.receive(Text)).turn_id == "turn-2"
        assert (await peer.receive(Interrupt)).turn_id == "turn-2"
        silent.set()
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script), reply_timeout=SECONDS) as tts:
        turn, sending = await waiting_turn(tts)
        interrupting = asyncio.create_task(turn.interrupt())
        await asyncio.sleep(0.01)
        interrupting.cancel()
        await sending
        await asyncio.wait_for(silent.wait(), SECONDS)


async def test_a_speech_stopped_before_its_first_text_left_is_over_at_once(
    stand_in: StandIn,
) -> None:
    async def script(peer: Any) -> None:
        await peer.ready(SLOW)
        assert (await peer.receive(Text)).turn_id == "turn-1"
        unknown = await peer.receive(Interrupt)
        message = ErrorMessage(
            code="unknown_turn", message="…", fatal=False, retryable=False, turn_id=unknown.turn_id
        )
        await peer.send(message)
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script), reply_timeout=SECONDS) as tts:
        await (await tts.turn()).send("Good")
        speech = tts.speak("Hello.")

        async def listen() -> list[bytes]:
            return [packet async for packet in speech]

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0.01)
        await speech.interrupt()
        assert await listening == []
        assert speech.result is not None and speech.result.reason == "interrupted"
        assert tts.connected


async def test_a_turn_that_waits_to_begin_is_interrupted_without_the_server(
    stand_in: StandIn,
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(SessionStart)
        asked.set()
        await go_on.wait()
        await peer.ready()
        assert (await peer.receive(Text)).turn_id == "turn-2"
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script), reply_timeout=SECONDS) as tts:
        turn, later = await tts.turn(), await tts.turn()
        await turn._opened()
        configuring = asyncio.create_task(tts.configure(voice="bass"))
        await asyncio.sleep(0)
        sending = asyncio.create_task(turn.send("Hello."))
        await asked.wait()
        assert await turn.interrupt() == interrupted("turn-1", 0, 0.0, "", "Hello.")
        assert turn.over
        go_on.set()
        await asyncio.gather(configuring, sending)
        await later.send("Yes?")
