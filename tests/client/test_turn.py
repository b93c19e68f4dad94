import asyncio
import gc
import logging
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from realtime_tts import RealtimeTTS, Turn
from realtime_tts.errors import ClientError, ConnectionLost, OverloadedError, TurnError
from realtime_tts.protocol.messages import (
    ErrorMessage,
    Flush,
    Interrupt,
    Played,
    Text,
    TurnEnd,
    WarningMessage,
)
from realtime_tts.protocol.settings import Limits
from tests.client.conftest import StandIn, left_by_cancelling
from tests.client.reports import interrupted


async def test_a_turn_sends_deltas_as_they_are_and_yields_its_packets(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        assert await peer.receive(Text) == Text(text=" The ti", turn_id="turn-1")
        assert await peer.receive(Text) == Text(text="de \n", turn_id="turn-1")
        assert await peer.receive(Flush) == Flush(turn_id="turn-1")
        assert await peer.receive(TurnEnd) == TurnEnd(turn_id="turn-1")
        await peer.started("turn-1")
        await peer.audio(1920, 2048, 100)
        await peer.done("turn-1", samples=4068)
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send(" The ti")
        await turn.send("")  # some language models send empty deltas
        await turn.send("de \n")
        await turn.flush()
        await turn.end()
        await turn.end()
        assert [len(packet) async for packet in turn] == [3840, 4096, 200]
        assert turn.text == " The tide \n"
        assert turn.layout == "streaming"
        assert turn.samples_received == 4068
        assert turn.over
        assert turn.result is not None
        assert (turn.result.reason, turn.result.ttfa_ms) == ("complete", 12.5)
        assert turn.result.seconds == pytest.approx(4068 / 24_000)


async def test_a_short_text_travels_with_its_end(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        assert await peer.receive(Text) == Text(text="Hello.", turn_id="turn-1", end=True)
        await peer.done("turn-1")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello.", end=True)
        assert [packet async for packet in turn] == []


async def test_a_long_text_is_cut_to_the_servers_limits(stand_in: StandIn) -> None:
    received: list[Text] = []

    async def script(peer: Any) -> None:
        await peer.ready(Limits(max_text_chars=100, max_message_bytes=65_536))
        received.extend([await peer.receive(Text) for _ in range(4)])
        await peer.done("turn-1")
        await peer.until_closed()

    text = "€" * 350
    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send(text, end=True)
        assert [packet async for packet in turn] == []
    assert [len(message.text) for message in received] == [100, 100, 100, 50]
    assert [message.end for message in received] == [False, False, False, True]
    assert "".join(message.text for message in received) == text


async def test_text_after_the_end_is_the_callers_mistake(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello.", end=True)
        with pytest.raises(ClientError, match=r"turn-1: text after its end.*tts\.turn\(\)"):
            await turn.send("More.")


async def test_text_after_the_server_ended_the_turn_is_dropped(stand_in: StandIn) -> None:
    rest: list[Any] = []

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.done("turn-1", "max_length")
        rest.extend(await peer.until_closed())

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello")
        assert [packet async for packet in turn] == []
        await turn.send(" again")
        await turn.flush()
        await turn.end()
        assert turn.text == "Hello"
    assert rest == []


async def test_a_turn_without_text_is_over_without_the_server(stand_in: StandIn) -> None:
    rest: list[Any] = []

    async def script(peer: Any) -> None:
        await peer.ready()
        rest.extend(await peer.until_closed())

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("", end=True)
        assert [packet async for packet in turn] == []
        assert turn.result is not None and turn.result.reason == "complete"
        other = await tts.turn()
        assert await other.interrupt() == interrupted("turn-2", 0, 0.0, "", "")
        assert [packet async for packet in other] == []
    assert rest == []


@pytest.mark.parametrize("position", [-0.5, float("nan"), float("inf"), "7"])
async def test_what_is_no_position_is_refused_at_once(stand_in: StandIn, position: Any) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        assert await peer.receive(Interrupt) == Interrupt(turn_id="turn-1", played_ms=0)
        await peer.interrupted("turn-1", text_remaining="Hello.")
        await peer.done("turn-1", "interrupted")

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello.")
        for tell in (turn.played, turn.interrupt):
            with pytest.raises(ClientError, match="0 or more; found"):
                await tell(position)
        with pytest.raises(ClientError, match="0 or more; found"):
            turn.abandon(played_ms=position)
        assert (await turn.interrupt(played_ms=0)).text_remaining == "Hello."


async def test_after_an_interrupt_not_one_packet_comes_out(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.started("turn-1")
        await peer.audio(1920, 2048, 2048)
        interrupt = await peer.receive(Interrupt)
        assert interrupt == Interrupt(turn_id="turn-1", played_ms=80.0)
        await peer.audio(2048)  # was on its way
        await peer.interrupted(
            "turn-1", samples_sent=8064, played_ms=80.0, text_spoken="Hel", text_remaining="lo."
        )
        await peer.done("turn-1", "interrupted", 8064)
        assert await peer.until_closed() == []

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello.", end=True)
        assert len(await anext(turn)) == 3840
        report = await turn.interrupt(played_ms=80)
        assert report == interrupted("turn-1", 8064, 80.0, "Hel", "lo.")
        assert [packet async for packet in turn] == []
        assert turn.interrupted == report
        assert turn.result is not None and turn.result.reason == "interrupted"
        assert await turn.interrupt() == report  # asked again, nothing is sent
        await turn.send("More.")  # the language model does not know yet


async def speaks_until_interrupted(peer: Any) -> None:
    """Speaks for turn-1, and says of every interrupt how much of it was heard."""
    await peer.ready()
    await peer.receive(Text)
    await peer.started("turn-1")
    await peer.audio(1920, 2048, 2048)
    for number in range(2):
        played_ms = (await peer.receive(Interrupt)).played_ms
        heard = "by estimate" if played_ms is None else "by position"
        await peer.interrupted("turn-1", played_ms=played_ms or 0.0, text_spoken=heard)
        if number == 0:
            await peer.done("turn-1", "interrupted")


async def left_by_break(turn: Turn) -> None:
    async for _ in turn:
        break


async def left_by_an_error(turn: Turn) -> None:
    with pytest.raises(ZeroDivisionError):
        async for packet in turn:
            _ = len(packet) / 0


async def left_by_the_end_of_its_block(turn: Turn) -> None:
    async with turn as same:
        assert same is turn
        await anext(turn)


@pytest.mark.parametrize(
    "leave",
    [left_by_break, left_by_an_error, left_by_cancelling, left_by_the_end_of_its_block],
)
async def test_who_leaves_a_turn_before_it_is_over_interrupts_it(
    stand_in: StandIn, leave: Callable[[Turn], Awaitable[None]]
) -> None:
    async with RealtimeTTS(await stand_in.start(speaks_until_interrupted)) as tts:
        turn = await tts.turn()
        await turn.send("Hello.")
        await leave(turn)
        await turn._inbox.wait_over()
        assert turn.result is not None and turn.result.reason == "interrupted"
        assert [packet async for packet in turn] == []
        assert (await turn.interrupt()).text_spoken == "by estimate", "asked already"
        assert (await turn.interrupt(played_ms=40)).text_spoken == "by position"
        assert turn.interrupted is not None and turn.interrupted.played_ms == 40


async def test_an_interrupt_right_behind_the_loop_is_the_only_one(stand_in: StandIn) -> None:
    rest: list[Any] = []

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.started("turn-1")
        await peer.audio(1920, 2048)
        assert await peer.receive(Interrupt) == Interrupt(turn_id="turn-1", played_ms=40.0)
        await peer.interrupted("turn-1", played_ms=40.0)
        await peer.done("turn-1", "interrupted")
        rest.extend(await peer.until_closed())

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello.")
        async for _ in turn:
            break
        await turn.interrupt(played_ms=40)
    assert rest == []


async def test_a_turn_that_is_over_is_left_as_it_is(stand_in: StandIn) -> None:
    rest: list[Any] = []

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.speak("turn-1", 1920)
        rest.extend(await peer.until_closed())

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        async with await tts.turn() as turn:
            await turn.send("Hello.", end=True)
            assert len([packet async for packet in turn]) == 1
        assert turn.result is not None and turn.result.reason == "complete"
        async with await tts.turn() as empty:
            pass
        assert empty.result is not None and empty.result.reason == "interrupted"
    assert rest == []


async def test_silence_does_not_wait_for_the_servers_answer(stand_in: StandIn) -> None:
    answer = asyncio.Event()

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.started("turn-1")
        await peer.audio(1920, 2048, 2048)
        await peer.receive(Interrupt)
        await answer.wait()
        await peer.interrupted("turn-1")
        await peer.done("turn-1", "interrupted")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello.", end=True)
        await anext(turn)
        interrupting = asyncio.create_task(turn.interrupt())
        await asyncio.sleep(0)
        assert [packet async for packet in turn] == []
        assert not interrupting.done()
        answer.set()
        await interrupting


async def test_a_done_turn_can_still_be_interrupted_while_it_is_heard(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.speak("turn-1", 1920)
        await peer.receive(Interrupt)
        await peer.interrupted(
            "turn-1", samples_sent=1920, played_ms=40.0, text_spoken="A", text_remaining="B"
        )
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("AB", end=True)
        assert len([packet async for packet in turn]) == 1
        assert (await turn.interrupt(40)).text_remaining == "B"


@pytest.mark.parametrize("forgotten", ["turn_already_done", "unknown_turn"])
async def test_a_turn_the_server_has_forgotten_counts_as_heard(
    stand_in: StandIn, forgotten: str
) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.speak("turn-1", 2400)
        await peer.receive(Interrupt)
        if forgotten == "unknown_turn":
            await peer.send(
                ErrorMessage(
                    code=forgotten, message="…", fatal=False, retryable=False, turn_id="turn-1"
                )
            )
        else:
            await peer.send(WarningMessage(code=forgotten, message="…", turn_id="turn-1"))
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("AB", end=True)
        assert len([packet async for packet in turn]) == 1
        assert await turn.interrupt() == interrupted("turn-1", 2400, 100.0, "AB", "")


async def test_an_interrupt_nobody_answers_gives_the_connection_up(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script), reply_timeout=0.2) as tts:
        turn = await tts.turn()
        await turn.send("Hello.")
        with pytest.raises(ConnectionLost, match=r"no answer to an interrupt within 0.2 s"):
            await turn.interrupt()
        assert not tts.connected


async def test_errors_of_a_turn_come_out_typed_and_the_session_goes_on(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        for turn_id, code, wait in (("turn-1", "numerics", None), ("turn-2", "overloaded", 850)):
            await peer.receive(Text)
            await peer.send(
                ErrorMessage(
                    code=code,
                    message="…",
                    fatal=False,
                    retryable=True,
                    retry_after_ms=wait,
                    turn_id=turn_id,
                )
            )
            await peer.done(turn_id, "error")
        await peer.receive(Text)
        await peer.done("turn-3")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("One.", end=True)
        with pytest.raises(TurnError, match="numerics") as failed:
            await anext(turn)
        assert (failed.value.server_code, failed.value.server_retryable) == ("numerics", True)
        turn = await tts.turn()
        await turn.send("Two.", end=True)
        with pytest.raises(OverloadedError) as refused:
            await anext(turn)
        assert refused.value.retry_after == 0.85
        turn = await tts.turn()
        await turn.send("Three.", end=True)
        assert [packet async for packet in turn] == []


async def test_what_had_come_is_delivered_before_a_lost_connection(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.started("turn-1")
        await peer.audio(1920, 2048)
        peer.socket.transport.abort()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello")
        packets = []
        with pytest.raises(ConnectionLost, match=r"0\.17 s of speech of turn turn-1 had come"):
            async for packet in turn:
                packets.append(packet)
        assert [len(packet) for packet in packets] == [3840, 4096]
        assert turn.text == "Hello"
        with pytest.raises(ConnectionLost):
            await turn.interrupt()


async def test_a_session_ended_by_the_server_says_why(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.send(
            ErrorMessage(code="going_away", message="the server stops", fatal=True, retryable=True)
        )
        await peer.socket.close(1001, "going_away")

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello")
        with pytest.raises(ConnectionLost, match="going_away: the server stops"):
            await anext(turn)


async def test_a_consumer_that_stops_reading_delays_no_control_message(stand_in: StandIn) -> None:
    packets = 2_000

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.started("turn-1")
        await peer.audio(*[2048] * packets)  # 8 MB, more than sockets buffer
        await peer.done("turn-1", samples=2048 * packets)
        await peer.receive(Text)
        await peer.speak("turn-2", 10)
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        slow = await tts.turn()
        await slow.send("Slow.", end=True)
        quick = await tts.turn()
        await quick.send("Quick.", end=True)
        assert [len(packet) async for packet in quick] == [20]
        assert slow.result is not None
        assert len([packet async for packet in slow]) == packets


async def test_warnings_are_kept_with_their_turn(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.send(WarningMessage(code="no_speakable_text", message="…", turn_id="turn-1"))
        await peer.done("turn-1")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("🎉", end=True)
        assert [packet async for packet in turn] == []
        assert [warning.code for warning in turn.warnings] == ["no_speakable_text"]


async def test_played_positions_are_reported(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        assert await peer.receive(Played) == Played(turn_id="turn-1", played_ms=640.5)
        await peer.done("turn-1")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.played(0)  # before any text there is nothing to report
        await turn.send("Hello.", end=True)
        await turn.played(640.5)
        assert [packet async for packet in turn] == []


async def test_a_turn_nobody_holds_any_more_takes_its_audio_with_it(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.started("turn-1")
        await peer.audio(1920)
        await peer.receive(Text)
        await peer.audio(1920)
        await peer.done("turn-1", samples=3840)
        await peer.speak("turn-2", 7)
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Dropped.", end=True)
        assert len(await anext(turn)) == 3840
        inbox = weakref.ref(turn._inbox)
        del turn
        turn = await tts.turn(turn_id="turn-2")
        await turn.send("Kept.", end=True)
        assert [len(packet) async for packet in turn] == [14]
        gc.collect()
        assert inbox() is None


async def test_messages_of_a_newer_server_are_ignored(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.socket.send('{"type": "words", "turn_id": "turn-1", "words": []}')
        await peer.done("turn-1", "a_new_reason")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello.", end=True)
        assert [packet async for packet in turn] == []


async def test_a_peer_that_sends_nonsense_loses_the_connection(
    stand_in: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "websockets")

    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.receive(Text)
        await peer.socket.send("not JSON")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        await turn.send("Hello.")
        with pytest.raises(ConnectionLost, match="what no realtime-tts server sends"):
            await anext(turn)


async def test_a_fast_language_model_is_slowed_below_the_servers_rate(stand_in: StandIn) -> None:
    limits = Limits(messages_per_second=200, message_burst=40)
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def script(peer: Any) -> None:
        await peer.ready(limits)
        while True:
            await peer.receive(Text)
            times.append(loop.time())
            if len(times) == 60:
                await peer.done("turn-1")

    async with RealtimeTTS(await stand_in.start(script)) as tts:
        turn = await tts.turn()
        for _ in range(60):
            await turn.send("x")
        await asyncio.sleep(0)
    # 20 go at once, the other 40 at 180 a second.
    assert times[-1] - times[0] > 0.15


async def close_in_a_turn(peer: Any) -> None:
    await peer.ready()
    await peer.receive(Text)
    await peer.socket.close()


async def unconnected_turn(tts: RealtimeTTS) -> Turn:
    """A turn, the second one, whose first text connects: `close_in_a_turn` had the first one."""
    lost, turn = await tts.turn(), await tts.turn()
    await lost.send("Hello.")
    with pytest.raises(ConnectionLost):
        await anext(lost)
    return turn


async def test_text_whose_turn_is_interrupted_while_it_connects_is_not_sent(
    stand_in: StandIn,
) -> None:
    connecting, interrupted = asyncio.Event(), asyncio.Event()

    async def second(peer: Any) -> None:
        connecting.set()
        await interrupted.wait()
        await peer.ready()
        assert await peer.receive(Text) == Text(text="Yes?", turn_id="turn-3", end=True)
        await peer.done("turn-3")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(close_in_a_turn, second)) as tts:
        turn = await unconnected_turn(tts)
        sending = asyncio.create_task(turn.send("Good"))
        await connecting.wait()
        report = await turn.interrupt()
        interrupted.set()
        await sending
        assert (report.text_spoken, report.text_remaining) == ("", "")
        assert [packet async for packet in tts.speak("Yes?")] == []


async def test_what_another_task_calls_while_the_first_text_connects_comes_behind_it(
    stand_in: StandIn,
) -> None:
    connecting, called = asyncio.Event(), asyncio.Event()

    async def second(peer: Any) -> None:
        connecting.set()
        await called.wait()
        await peer.ready()
        assert await peer.receive(Text) == Text(text="Hello.", turn_id="turn-2")
        assert await peer.receive(Flush) == Flush(turn_id="turn-2")
        assert await peer.receive(Text) == Text(text=" Bye.", turn_id="turn-2")
        assert await peer.receive(TurnEnd) == TurnEnd(turn_id="turn-2")
        await peer.done("turn-2")
        await peer.until_closed()

    async with RealtimeTTS(await stand_in.start(close_in_a_turn, second)) as tts:
        turn = await unconnected_turn(tts)
        begun = asyncio.create_task(turn.send("Hello."))
        await connecting.wait()
        calls = turn.flush(), turn.send(" Bye."), turn.end(), turn.send(" And another thing.")
        others = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0)  # all of them have begun
        called.set()
        await begun
        *done, late = await others
        assert done == [None] * 3 and isinstance(late, ClientError)
        assert turn.text == "Hello. Bye."
        assert [packet async for packet in turn] == []
