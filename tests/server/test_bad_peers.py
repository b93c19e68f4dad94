"""Bad peers against the whole front: each is dealt with, and nobody else notices."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from typing import Any

import pytest
import websockets

from realtime_tts.config import LimitsConfig, ServerConfig, SocketConfig
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.server.http import GuardedHttp
from tests.server.peers import Connecting, frame_bytes
from tests.server.speaking import speaking
from tests.server.talking import of_type
from tests.waiting import SECONDS, Passes, until

TEXT, BINARY, CLOSE = 0x1, 0x2, 0x8
LONG_TURN = '{"type":"text","text":"%s","end":true}' % ("x" * 600)  # 48 s of tone


async def listen(talker: Any, text: str) -> dict[str, Any]:
    """Have a text spoken; gives its turn.done."""
    await talker.send("text", text=text, end=True)
    done: dict[str, Any] = (await talker.until("turn.done"))[-1]
    return done


@pytest.mark.alone
async def test_a_client_that_stops_reading_is_dropped_and_delays_nobody(peer: Connecting) -> None:
    config = ServerConfig(port=0, socket=SocketConfig(write_stall=1.0))
    async with speaking(config, FakeEngineConfig(frames_per_token=1)) as server:
        slow = await peer(server.port, receive_buffer=4_096)
        await slow.upgrade("/v1/tts?lead_ms=30000")
        await slow.frame(TEXT, LONG_TURN.encode())
        async with server.talk() as other:
            started = time.monotonic()
            done = await listen(other, "x" * 60)
            assert done["underruns"] == 0
            await until(lambda: server.value("tts_slow_reader_aborts_total"))
            assert time.monotonic() - started < 10
            assert (await listen(other, "Still here."))["underruns"] == 0
        await server.settled()


async def test_a_socket_that_was_accepted_elsewhere_counts_once_at_every_moment() -> None:
    async with speaking() as server:
        taker = server.running.server
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            taker.take(listener.accept()[0])
        for _ in range(10):
            assert taker.sockets == 1
            await asyncio.sleep(0)
        client.close()
        await until(lambda: not taker.sockets)


async def test_a_client_that_reads_a_trickle_is_dropped_when_too_much_waits(
    peer: Connecting,
) -> None:
    limits = LimitsConfig(outbox_ms=500, max_lead_ms=3_000)
    config = ServerConfig(port=0, limits=limits, socket=SocketConfig(write_stall=10))
    async with speaking(config) as server:
        slow = await peer(server.port, receive_buffer=4_096)
        await slow.upgrade("/v1/tts")
        # Ten queued turns of 4 s each: far more audio than may wait.
        await slow.frame(TEXT, LONG_TURN.encode())
        async with asyncio.timeout(SECONDS):
            while not server.value("tts_slow_reader_aborts_total"):
                await slow._receive()
                await asyncio.sleep(0.3)
        await server.settled()


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", "bad_json"),
        ("hello", "bad_json"),
        ("[" * 60_000, "bad_json"),
        ('{"a":' * 12_000, "bad_json"),
        ("[]", "bad_json"),
        ('{"type":"text","text":NaN}', "bad_json"),
        ('{"type":1}', "bad_message"),
        ('{"type":"speak"}', "unknown_type"),
        ('{"type":"text"}', "bad_message"),
        ('{"type":"text","text":{"a":[1]}}', "bad_message"),
        ('{"type":"interrupt","played_ms":1e999}', "bad_message"),
        ('{"type":"interrupt","played_ms":-1}', "bad_message"),
        ('{"type":"played","played_samples":' + "9" * 5_000 + "}", "bad_json"),
        ('{"type":"session.start","instructions":"' + "x" * 70_000 + '"}', "too_large"),
        ('{"type":"text","end":true,"text":"' + "x" * 70_000 + '"}', "too_large"),
        ('{"type":"text","end":true,"text":"' + "x" * 20_000 + '"}', "text_too_long"),
        (b"\x00\x01\x02", "binary_not_allowed"),
        (b"", "binary_not_allowed"),
    ],
)
async def test_garbage_is_named_and_the_session_goes_on(raw: str | bytes, code: str) -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.socket.send(raw)
        error = (await talker.until("error"))[-1]
        assert (error["code"], error["fatal"]) == (code, False)
        if "turn_id" in error:
            await talker.until("turn.done")
        assert (await listen(talker, "Fine."))["reason"] == "complete"


async def test_a_turn_has_no_hole_where_a_message_was_too_large() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", text="The beginning ")
        await talker.until("turn.started")
        await talker.send("text", text="x" * 70_000)
        error = (await talker.until("error"))[-1]
        assert (error["code"], error["turn_id"]) == ("too_large", "t1")
        await talker.send("text", text="and the end.", end=True)
        assert (await talker.until("error"))[-1]["code"] == "turn_too_long"
        done = (await talker.until("turn.done"))[-1]
        assert (done["reason"], done["text_chars"]) == ("complete", len("The beginning "))


async def test_garbage_without_end_closes_the_session() -> None:
    async with speaking() as server, server.talk() as talker:
        for _ in range(20):
            await talker.socket.send("garbage")
        messages = await talker.rest()
        assert messages[-1]["code"] == "too_many_bad_messages"
        assert talker.socket.close_code == 1008


async def test_a_message_far_over_the_limit_is_closed_with_1009() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_message_bytes=1_000, max_text_chars=900))
    async with speaking(config) as server, server.talk() as talker:
        await talker.socket.send("x" * 16_001)
        await talker.rest()
        assert talker.socket.close_code == 1009


async def test_lone_surrogates_nul_and_control_tokens_are_only_text() -> None:
    async with speaking() as server, server.talk() as talker:
        raw = r'{"type":"text","text":"a\ud800 \u0000 <|im_start|> \udc00b\u202e","end":true}'
        await talker.socket.send(raw)
        assert (await talker.until("turn.done"))[-1]["reason"] == "complete"


async def test_text_cut_inside_an_emoji_is_whole_again() -> None:
    async with speaking() as server, server.talk("?text_filter=off") as talker:
        await talker.socket.send(r'{"type":"text","text":"hi \ud83d"}')
        await talker.socket.send(r'{"type":"text","text":"\ude00","end":true}')
        done = (await talker.until("turn.done"))[-1]
        assert done["reason"] == "complete"


async def test_invalid_utf8_closes_with_1007_and_frees_the_row(peer: Connecting) -> None:
    async with speaking() as server:
        bad = await peer(server.port)
        await bad.upgrade("/v1/tts")
        await bad.frame(TEXT, b'{"type":"text","text":"Hello, and on and on"}')
        await bad.frame(TEXT, b"\xff\xff")
        assert await bad.close_code() == 1007
        await server.settled()


@pytest.mark.alone
async def test_a_flood_of_messages_closes_its_own_session_only() -> None:
    limits = LimitsConfig(messages_per_second=50, message_burst=100)
    async with speaking(ServerConfig(port=0, limits=limits)) as server:
        async with server.talk() as flooder, server.talk() as other:
            talking = asyncio.create_task(listen(other, "x" * 40))
            for _ in range(400):
                await flooder.send("text", text="x")
            messages = await flooder.rest()
            codes = [error["code"] for error in of_type(messages, "error")]
            assert codes == ["rate_limited"]
            assert flooder.socket.close_code == 1008
            assert (await talking)["underruns"] == 0
        await server.settled()


async def test_an_interrupt_takes_back_what_a_slow_reader_has_not_read(peer: Connecting) -> None:
    config = ServerConfig(port=0, socket=SocketConfig(write_stall=10))
    async with speaking(config) as server:
        slow = await peer(server.port, receive_buffer=4_096)
        await slow.upgrade("/v1/tts?lead_ms=30000")
        await slow.frame(TEXT, LONG_TURN.encode())
        made = "tts_engine_frames_total"
        await until(lambda: server.value(made) * 0.08 >= 29)  # 1.4 MB
        await slow.frame(TEXT, b'{"type":"interrupt"}')
        audio = 0
        while True:
            opcode, payload = await slow.next_frame()
            if opcode == BINARY:
                audio += len(payload)
            elif json.loads(payload)["type"] == "turn.interrupted":
                break
        assert json.loads(payload)["samples_sent"] * 2 == audio
        assert audio < 300_000  # what the kernel and the transport had
        opcode, payload = await slow.next_frame()
        assert json.loads(payload)["type"] == "turn.done"


async def test_a_burst_of_messages_lets_others_run_in_between(
    peer: Connecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 0.0)
    async with speaking() as server:
        burst = await peer(server.port)
        await burst.upgrade("/v1/tts")
        (session,) = server.sessions
        receive, turns, passes = session.receive, [], Passes()

        def spy(raw: str, now: float) -> Any:
            turns.append(passes.count)
            return receive(raw, now)

        session.receive = spy
        with passes:
            await burst.send(frame_bytes(TEXT, b'{"type":"flush"}') * 600)
            await until(lambda: len(turns) == 600)
        assert max(turns.count(turn) for turn in set(turns)) == 1


async def test_of_a_crowd_that_connects_at_once_few_are_let_in_before_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accepted: Counter[int] = Counter()
    passes = Passes()
    made = GuardedHttp.connection_made

    def count(self: GuardedHttp, transport: asyncio.BaseTransport) -> None:
        accepted[passes.count] += 1
        made(self, transport)

    monkeypatch.setattr(GuardedHttp, "connection_made", count)
    async with speaking() as server:
        # The kernel takes them all, though this test keeps the server from its loop meanwhile.
        address = ("127.0.0.1", server.port)
        crowd = [socket.create_connection(address, timeout=0.5) for _ in range(200)]
        with passes:
            await until(lambda: accepted.total() == len(crowd))
        assert max(accepted.values()) <= 4
        for one in crowd:
            one.close()


async def test_a_socket_that_is_killed_in_a_frame_leaves_nothing(peer: Connecting) -> None:
    async with speaking() as server:
        for part in (b"\x81", b"\x81\xfe\x01", b"\x81\x85\x00\x00\x00\x00he"):
            client = await peer(server.port)
            await client.upgrade("/v1/tts")
            await client.send(part)
            client.abort()
        await server.settled()
        assert server.value("tts_sessions") == 0


async def test_connect_and_abort_a_thousand_times_leaks_nothing(peer: Connecting) -> None:
    async with speaking() as server:
        tasks = len(asyncio.all_tasks())
        for _ in range(10):
            clients = [await peer(server.port) for _ in range(50)]
            for index, client in enumerate(clients):
                if index % 2:
                    await client.upgrade("/v1/tts")
                    await client.frame(TEXT, b'{"type":"text","text":"Hello"}')
                client.abort()
        await server.settled()
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        assert not server.running.server.server_state.connections


@pytest.mark.parametrize("method", ["turn_started", "turn_finished", "turn_interrupted"])
async def test_a_fault_of_our_own_ends_that_session_with_1011_only(
    caplog: pytest.LogCaptureFixture, method: str
) -> None:
    async with speaking() as server, server.talk() as victim, server.talk() as other:
        for session in server.sessions:
            setattr(session, method, _raise_once(session, method, "bad"))
        await victim.send("text", turn_id="bad", text="Hello.", end=method != "turn_interrupted")
        if method == "turn_interrupted":
            await victim.until("turn.started")
            await victim.send("interrupt")
        await victim.rest()
        assert victim.socket.close_code == 1011
        assert (await listen(other, "Fine."))["reason"] == "complete"
        assert "session.bug" in caplog.text
        await server.settled_engine()


def _raise_once(session: Any, name: str, turn_id: str) -> Any:
    original = getattr(session, name)

    def method(*args: Any) -> Any:
        if args[0] == turn_id:
            raise ZeroDivisionError("injected")
        return original(*args)

    return method


async def test_no_text_of_a_client_is_ever_logged(caplog: pytest.LogCaptureFixture) -> None:
    secret = "xyzzy-plugh"
    caplog.set_level("DEBUG")
    async with speaking() as server:
        async with server.talk(f"?instructions={secret}") as talker:
            await listen(talker, f"My password is {secret}.")
            await talker.send("text", text=f"{secret} {secret}")
            await talker.until("turn.started")
            await talker.send("interrupt")
            await talker.until("turn.done")
            await talker.socket.send(f"garbage {secret}")
            await talker.until("error")
            await talker.send("session.start", voice=secret)
            await talker.until("error")
        await server.settled()
    ours = [r for r in caplog.records if r.name.startswith(("realtime_tts", "uvicorn"))]
    assert any(record.getMessage() == "turn.done" for record in ours)
    for record in ours:
        line = json.dumps([record.getMessage().split("?")[0], getattr(record, "fields", {})])
        assert secret not in line


async def test_messages_after_the_close_are_not_answered() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("session.close")
        try:
            for _ in range(50):
                await talker.send("text", text="late", end=True)
        except websockets.ConnectionClosed:
            pass
        messages = await talker.rest()
        assert not any(isinstance(message, bytes) for message in messages)
