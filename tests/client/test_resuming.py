"""A reply of the Python client whose socket is lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

import pytest

from realtime_tts import Backoff, ConnectionLost, RealtimeTTS
from realtime_tts.client.connection import Connection
from realtime_tts.client.resuming import ResumeState, joined
from realtime_tts.protocol import messages as m
from tests.client.test_with_server import server
from tests.waiting import SECONDS, until

TEXT = "The tide is coming in. Good morning to you, and to all who are with you! " * 2
QUICK = Backoff(first=0.01, longest=0.05, give_up_after=20.0)


def state(samples: int, **fields: object) -> m.TurnState:
    return m.TurnState(turn_id="a", samples=samples, text_chars=samples // 100, state="s", **fields)  # type: ignore[arg-type]


def test_a_state_counts_once_its_packet_has_come() -> None:
    kept = ResumeState("a")
    assert kept.messages(()) == []
    kept.store(state(100, part="p", codes="AAAA"))
    assert kept.messages(()) == []
    kept.packet()
    kept.store(state(200, codes="BBBB"))
    kept.socket_lost()
    kept.packet()
    codes, resume = kept.messages((m.Word(text="The", start_ms=0, end_ms=1),))
    assert codes == m.TurnCodes(turn_id="a", codes=("AAAA",))
    assert resume == m.TurnResume(
        turn_id="a", samples=100, text_chars=1, words_chars=3, part="p", state="s"
    )


def test_codes_from_before_a_part_are_not_sent_and_many_take_several_messages() -> None:
    kept = ResumeState("a")
    for number in range(3):
        kept.store(state(number, part="p", codes="old="))
        kept.packet()
    for number in range(5_000):
        kept.store(state(number, codes="A" * 44))
        kept.packet()
    *codes, _ = kept.messages(())
    assert all(isinstance(each, m.TurnCodes) for each in codes) and len(codes) > 5
    together = [one for each in codes if isinstance(each, m.TurnCodes) for one in each.codes]
    assert together == ["old=", *["A" * 44] * 5_000]
    assert all(len(str(each)) < 60_000 for each in codes)


def test_what_was_heard_is_what_the_states_say() -> None:
    kept = ResumeState("a")
    for samples in (2_400, 4_800, 7_200):
        kept.store(state(samples))
        kept.packet()
    report = kept.report("x" * 100, 200.0)
    assert (len(report.text_spoken), len(report.text_remaining)) == (48, 52)
    assert len(kept.report("x" * 100, None).text_spoken) == 72
    assert kept.report("x" * 100, 1e6).played_ms == 300


def test_texts_in_a_row_are_joined_and_flushes_stay_between() -> None:
    script = [m.Text(text=each, turn_id="a") for each in "abc"]
    end = m.Text(text="d", turn_id="a", end=True)
    flush = m.Flush(turn_id="a")
    assert joined([*script, flush, end], 2) == [
        m.Text(text="ab", turn_id="a"),
        m.Text(text="c", turn_id="a"),
        flush,
        end,
    ]


async def lose(tts: RealtimeTTS) -> None:
    """The socket is gone, without a word."""
    connection = tts._connection
    assert connection is not None
    connection._socket.transport.abort()


@pytest.mark.parametrize("before", [0, 1, 20])
async def test_a_reply_goes_on_and_text_that_comes_meanwhile_is_in_its_place(before: int) -> None:
    async with (
        server() as started,
        RealtimeTTS(started.url, backoff=QUICK, seed=5, word_times="on", lead_ms=30_000) as tts,
    ):
        turn = await tts.turn()
        await turn.send(TEXT[:100])
        audio = b"".join([await anext(turn) for _ in range(before)])
        await lose(tts)
        for at in range(100, len(TEXT), 7):
            await turn.send(TEXT[at : at + 7])
        await turn.end()
        audio += b"".join([packet async for packet in turn])
        assert turn.resumes == 1 and turn.result is not None
        assert turn.result.reason == "complete" and not turn.warnings
        assert "".join(word.text for word in turn.words) == TEXT
        assert len(audio) == turn.result.samples * 2


async def test_settings_that_change_in_the_middle_of_a_reply_are_for_the_next_one() -> None:
    async with (
        server() as started,
        RealtimeTTS(started.url, backoff=QUICK, seed=5, lead_ms=30_000) as tts,
    ):
        audio: dict[str, bytes] = {}
        for voice in ("alto", "bass"):
            await tts.configure(voice=voice)
            audio[voice] = b"".join([packet async for packet in tts.speak(TEXT)])
        await tts.configure(voice="alto")
        for packets in (0, 3):
            turn, later = await tts.turn(), await tts.turn()
            await turn.send(TEXT, end=True)
            heard = b"".join([await anext(turn) for _ in range(packets)])
            await tts.configure(voice="bass")
            await later.send(TEXT, end=True)
            await lose(tts)
            assert heard + b"".join([packet async for packet in turn]) == audio["alto"]
            assert turn.resumes == 1 and not turn.warnings
            assert b"".join([packet async for packet in later]) == audio["bass"]
            assert tts.ready.settings.voice == "bass"
            await tts.configure(voice="alto")


async def test_text_that_comes_while_a_session_gets_a_replys_settings_waits_for_it() -> None:
    async with (
        server() as started,
        RealtimeTTS(started.url, backoff=QUICK, word_times="on", lead_ms=30_000) as tts,
        asyncio.timeout(SECONDS),
    ):
        turn = await tts.turn()
        await turn.send(TEXT[:100])
        await anext(turn)
        await tts.configure(voice="bass")
        configure = Connection.configure

        async def slowly(self: Connection, start: m.SessionStart) -> None:
            await configure(self, start)
            if not turn.text.endswith(TEXT[100:]):
                await turn.send(TEXT[100:])
                await turn.end()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "configure", slowly)
            await lose(tts)
            await until(lambda: len(turn.text) == len(TEXT))
        async for _ in turn:
            pass
        assert turn.resumes == 1 and not turn.warnings
        assert "".join(word.text for word in turn.words) == TEXT


@pytest.mark.parametrize("begun", [False, True])
async def test_a_socket_that_is_lost_while_it_is_handed_to_a_turn_costs_no_reply(
    begun: bool,
) -> None:
    async with (
        server() as started,
        RealtimeTTS(started.url, backoff=QUICK, lead_ms=30_000) as tts,
        asyncio.timeout(SECONDS),
    ):
        turn, times = await tts.turn(), 0
        connect = turn._connect

        async def lost_at_once() -> Connection:
            nonlocal times
            times += 1
            found = await connect()
            if times == 1:
                await lose(tts)
                await until(lambda: found.lost is not None)
            return found

        if begun:
            await turn.send(TEXT[:50])
            await anext(turn)
        turn._connect = lost_at_once
        if begun:
            await lose(tts)
        await turn.send(TEXT[50 * begun :], end=True)
        async for _ in turn:
            pass
        assert times == 2 and turn.result is not None
        assert (turn.result.reason, turn.result.text_chars) == ("complete", len(TEXT))


async def test_a_server_that_answers_no_settings_costs_no_reply() -> None:
    async with (
        server() as started,
        RealtimeTTS(started.url, backoff=QUICK, lead_ms=30_000) as tts,
        asyncio.timeout(SECONDS),
    ):
        turn, connection = await tts.turn(), tts._connection
        assert connection is not None
        await turn.send(TEXT, end=True)
        await anext(turn)
        connection.reply_timeout = 0.01
        connection._expect_ready = asyncio.get_running_loop().create_future  # type: ignore[method-assign]
        with pytest.raises(ConnectionLost, match="no `ready`"):
            await tts.configure(voice="bass")
        async for _ in turn:
            pass
        assert turn.result is not None and turn.result.reason == "complete"


async def test_what_is_said_again_is_in_messages_that_the_server_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []
    told = Connection.send

    async def send(self: Connection, message: m.Message, *, urgent: bool = False) -> None:
        sent.append(message.text if isinstance(message, m.Text) else "")
        await told(self, message, urgent=urgent)

    monkeypatch.setattr(Connection, "send", send)
    async with server() as started, RealtimeTTS(started.url, backoff=QUICK, lead_ms=30_000) as tts:
        turn = await tts.turn()
        for at in range(0, 9_000, 50):
            await turn.send("word " * 10 + str(at))
        await anext(turn)
        limits = tts.ready.limits
        sent.clear()
        await lose(tts)
        while "".join(sent) != turn.text:
            await anext(turn)
        longest = max(map(len, sent))
        assert longest * 8 <= limits.max_message_bytes and longest <= limits.max_text_chars
        assert longest > limits.max_message_bytes // 16, "and in few of them"
        await turn.interrupt()


async def test_turns_that_wait_are_spoken_in_their_order() -> None:
    async with server() as started, RealtimeTTS(started.url, backoff=QUICK, lead_ms=30_000) as tts:
        turns = [await tts.turn() for _ in range(3)]
        for turn in turns:
            await turn.send(TEXT, end=True)
        await anext(turns[0])
        await lose(tts)
        done: list[str] = []

        async def listen(turn: object) -> None:
            async for _ in turn:  # type: ignore[attr-defined]
                pass
            done.append(turn.turn_id)  # type: ignore[attr-defined]

        await asyncio.gather(*map(listen, turns))
        assert done == ["turn-1", "turn-2", "turn-3"]


async def test_an_interrupt_without_a_server_is_answered_here() -> None:
    async with server() as started:
        tts = RealtimeTTS(started.url, backoff=QUICK, lead_ms=30_000)
        turn = await tts.turn()
        await turn.send(TEXT, end=True)
        for _ in range(30):
            await anext(turn)
    report = await turn.interrupt(played_ms=1_000)
    assert report.text_spoken + report.text_remaining == TEXT
    assert report.text_spoken and report.samples_sent > 24_000
    assert turn.result is not None and turn.result.reason == "interrupted"
    await tts.close()


@pytest.mark.parametrize("resume", ["on", "off"])
async def test_an_interrupt_of_what_is_still_heard_needs_no_socket(
    resume: Literal["on", "off"],
) -> None:
    """The last of a reply is played for seconds after its end, and the socket may be lost then."""
    async with (
        server() as started,
        RealtimeTTS(
            started.url, backoff=QUICK, lead_ms=30_000, resume=resume, reply_timeout=SECONDS
        ) as tts,
    ):
        turn = await tts.turn()
        await turn.send(TEXT, end=True)
        async for _ in turn:
            pass
        await lose(tts)
        async with asyncio.timeout(SECONDS / 3):
            await until(lambda: not tts.connected)
            if resume == "off":
                with pytest.raises(ConnectionLost):
                    await turn.interrupt(played_ms=1_000)
                return
            report = await turn.interrupt(played_ms=1_000)
    assert report.text_spoken + report.text_remaining == TEXT
    assert report.text_spoken and report.text_remaining
    assert turn.result is not None and turn.result.reason == "complete"


async def test_who_does_not_want_it_gets_the_error() -> None:
    for options in ({"backoff": Backoff(give_up_after=0)}, {"resume": "off"}):
        async with server() as started:
            tts = RealtimeTTS(started.url, **options)
            turn = await tts.turn()
            await turn.send(TEXT)
            await anext(turn)
            await lose(tts)
            with pytest.raises(ConnectionLost):
                async for _ in turn:
                    pass
            await tts.close()


async def test_a_reply_that_finds_no_other_session_says_why() -> None:
    async with server() as started:
        tts = RealtimeTTS(started.url, backoff=QUICK)
        turn = await tts.turn()
        await turn.send(TEXT)
        await anext(turn)
        tts._target = replace(tts._target, url=tts.url.replace("/v1/tts", "/nothing"))
        await lose(tts)
        with pytest.raises(ConnectionLost, match=r"again failed: .* no speech server at this path"):
            async for _ in turn:
                pass
        await tts.close()
