import asyncio

import pytest

from realtime_tts.client import Interrupted, TurnResult
from realtime_tts.client.inbox import Inbox
from realtime_tts.client.turn_view import TurnView
from realtime_tts.errors import ConnectionLost, OverloadedError, TurnError
from realtime_tts.protocol.messages import WarningMessage, Word


def result(reason: str = "complete") -> TurnResult:
    return TurnResult(
        turn_id="t",
        reason=reason,
        samples=2,
        ttfa_ms=1.0,
        underruns=0,
        held_ms=0.0,
        text_chars=3,
    )


def report() -> Interrupted:
    return Interrupted(
        turn_id="t", samples_sent=2, played_ms=1.0, text_spoken="a", text_remaining="b"
    )


async def drained(inbox: Inbox) -> list[bytes]:
    packets = []
    while (packet := await inbox.next()) is not None:
        packets.append(packet)
    return packets


async def test_packets_come_out_in_order_and_then_the_end() -> None:
    inbox = Inbox("t")
    inbox.packet(b"aa")
    inbox.packet(b"bbbb")
    inbox.done(result())
    assert await drained(inbox) == [b"aa", b"bbbb"]
    assert inbox.samples_received == 3


async def test_a_consumer_that_waits_is_woken_by_a_packet_and_by_the_end() -> None:
    inbox = Inbox("t")
    consumer = asyncio.create_task(drained(inbox))
    await asyncio.sleep(0)
    inbox.packet(b"aa")
    await asyncio.sleep(0)
    inbox.done(result())
    assert await consumer == [b"aa"]


async def test_silence_drops_what_is_here_and_what_still_comes() -> None:
    inbox = Inbox("t")
    inbox.packet(b"aa")
    inbox.silence()
    inbox.packet(b"bb")
    assert await inbox.next() is None


async def test_a_failure_comes_after_the_packets_that_are_here() -> None:
    inbox = Inbox("t")
    inbox.packet(b"aa")
    inbox.fail(ConnectionLost("gone"))
    assert await inbox.next() == b"aa"
    with pytest.raises(ConnectionLost, match="gone"):
        await inbox.next()


async def test_only_the_first_failure_counts() -> None:
    inbox = Inbox("t")
    inbox.fail(ValueError("first"))
    inbox.fail(ConnectionLost("second"))
    with pytest.raises(ValueError, match="first"):
        await inbox.next()


async def test_a_turn_that_is_done_does_not_fail_when_the_socket_goes() -> None:
    inbox = Inbox("t")
    inbox.done(result())
    inbox.fail(ConnectionLost("gone"))
    assert await inbox.next() is None


async def test_a_refused_delta_fails_the_turn_at_its_end_and_not_before() -> None:
    inbox = Inbox("t")
    inbox.refuse(TurnError("turn_too_long: …", "turn_too_long"))
    inbox.packet(b"aa")
    assert await inbox.next() == b"aa"
    inbox.done(result())
    with pytest.raises(TurnError, match="turn_too_long"):
        await inbox.next()


async def test_an_error_ends_the_turn_with_what_the_server_said() -> None:
    inbox = Inbox("t")
    inbox.refuse(OverloadedError("no capacity", 0.8))
    inbox.done(result("error"))
    with pytest.raises(OverloadedError, match="no capacity"):
        await inbox.next()


@pytest.mark.parametrize(("reason", "code"), [("error", "error"), ("closed", "closed")])
async def test_speech_cut_short_by_the_server_never_looks_complete(reason: str, code: str) -> None:
    inbox = Inbox("t")
    inbox.done(result(reason))
    with pytest.raises(TurnError) as raised:
        await inbox.next()
    assert raised.value.server_code == code


@pytest.mark.parametrize(
    "reason", ["complete", "interrupted", "idle", "guard_silence", "max_length", "something_new"]
)
async def test_other_reasons_end_quietly(reason: str) -> None:
    inbox = Inbox("t")
    inbox.done(result(reason))
    assert await inbox.next() is None


async def test_an_interrupted_turn_ends_quietly_whatever_was_refused_before() -> None:
    inbox = Inbox("t")
    inbox.refuse(TurnError("late", "turn_too_long"))
    inbox.was_interrupted(report())
    inbox.done(result("interrupted"))
    assert await inbox.next() is None


async def test_the_answer_to_an_interrupt_reaches_everyone_who_waits() -> None:
    inbox = Inbox("t")
    waiting = [asyncio.create_task(inbox.wait_interrupted()) for _ in range(3)]
    await asyncio.sleep(0)
    inbox.packet(b"aa")  # wakes them for nothing
    await asyncio.sleep(0)
    inbox.was_interrupted(report())
    assert await asyncio.gather(*waiting) == [report()] * 3


async def test_a_forgotten_turn_gets_no_answer() -> None:
    inbox = Inbox("t")
    inbox.done(result())
    inbox.warn(WarningMessage(code="turn_already_done", message="…", turn_id="t"))
    assert await inbox.wait_interrupted() is None


async def test_waiting_for_an_answer_ends_when_the_connection_does() -> None:
    inbox = Inbox("t")
    inbox.fail(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost):
        await inbox.wait_interrupted()


@pytest.mark.parametrize("samples", [1_920, 12_132, 385_920, 389_760])
def test_the_last_word_is_heard_where_all_was_played_however_that_is_computed(samples: int) -> None:
    inbox = Inbox("t")
    inbox.words.append(Word(text="Hello.", start_ms=0.0, end_ms=samples / 24))
    turn = TurnView(inbox, ["Hello."])
    seconds = samples / 24_000
    assert turn.heard(samples / 24) == turn.heard(seconds * 1000) == "Hello."
    assert turn.heard((samples - 1) / 24) == ""
