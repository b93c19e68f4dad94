"""GuardedWebSocket: each kind of bad peer is given up in time, and the others do not notice."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from realtime_tts.background import cancel
from realtime_tts.config import SocketConfig
from realtime_tts.server.guarded import ABORT_EXTENSION
from realtime_tts.server.websocket import GuardedWebSocket
from tests.server.apps import aimed
from tests.server.peers import frame_bytes
from tests.waiting import Passes, settled, until

MS = 0.001
FAST = SocketConfig(
    ping_interval=60,
    write_stall=300 * MS,
    handshake_timeout=300 * MS,
    close_timeout=200 * MS,
)
TEXT, BINARY, CLOSE, PING, PONG, CONT = 0x1, 0x2, 0x8, 0x9, 0xA, 0x0


class App:
    """Accepts, notes what it receives, and sends `packets` of 4 KB if told to."""

    def __init__(self, packets: int = 0) -> None:
        self.packets = packets
        self.received: list[dict[str, Any]] = []
        self.sent = 0
        self.disconnected = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        sender = asyncio.create_task(self.stream(send))
        try:
            while True:
                message = await receive()
                self.received.append(message)
                if message["type"] == "websocket.disconnect":
                    self.disconnected.set()
                    return
        finally:
            await cancel(sender)

    async def stream(self, send: Any) -> None:
        for _ in range(self.packets):
            await send({"type": "websocket.send", "bytes": bytes(4_096)})
            self.sent += 1

    def last_reason(self) -> str | None:
        reason: str | None = self.received[-1].get("reason")
        return reason


async def test_a_peer_that_stops_reading_is_dropped() -> None:
    app = App(packets=10_000)
    async with aimed(app, FAST) as server:
        slow = await server.peer(receive_buffer=4_096)
        await slow.upgrade()
        await app.disconnected.wait()
        assert app.last_reason() == "slow_reader"
        assert server.aborts("slow_reader") == 1
        # Little was given to the kernel, so little audio is lost with the peer.
        assert app.sent * 4_096 < 400_000


async def test_a_peer_that_reads_slowly_but_reads_is_kept() -> None:
    app = App(packets=60)
    async with aimed(app, FAST) as server:
        reader = await server.peer(receive_buffer=4_096)
        await reader.upgrade()
        for _ in range(60):
            opcode, payload = await reader.next_frame()
            assert (opcode, len(payload)) == (BINARY, 4_096)
            await asyncio.sleep(10 * MS)
        assert server.aborts("slow_reader") == 0


async def test_a_peer_that_answers_no_ping_is_dropped_even_with_a_full_buffer() -> None:
    settings = SocketConfig(ping_interval=100 * MS, ping_timeout=200 * MS, write_stall=10)
    app = App(packets=10_000)
    async with aimed(app, settings) as server:
        silent = await server.peer(receive_buffer=4_096)
        await silent.upgrade()
        await app.disconnected.wait()
        assert server.aborts("ping_timeout") == 1


@pytest.mark.parametrize(("opcode", "reason"), [(PING, "ping_flood"), (PONG, "pong_flood")])
async def test_a_flood_of_control_frames_is_cut_off(opcode: int, reason: str) -> None:
    app = App()
    async with aimed(app, FAST) as server:
        flooder = await server.peer()
        await flooder.upgrade()
        for _ in range(60):
            await flooder.frame(opcode, b"x" * 100)
        await app.disconnected.wait()
        assert app.last_reason() == reason


async def test_a_sane_number_of_pings_is_answered() -> None:
    async with aimed(App(), FAST) as server:
        friendly = await server.peer()
        await friendly.upgrade()
        for number in range(40):
            await friendly.frame(PING, bytes([number]))
            assert await friendly.next_frame() == (0xA, bytes([number]))


async def test_pings_are_counted_by_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    time = loop.time
    async with aimed(App(), FAST) as server:
        friendly = await server.peer()
        await friendly.upgrade()
        for second in range(3):
            monkeypatch.setattr(loop, "time", lambda second=second: time() + second)
            for _ in range(40):
                await friendly.frame(PING)
                await friendly.next_frame()
        assert server.aborts("ping_flood") == 0


async def test_pongs_that_nobody_reads_do_not_pile_up() -> None:
    settings = SocketConfig(ping_interval=60, write_stall=10, write_buffer_cap=1)
    app = App(packets=10_000)
    async with aimed(app, settings) as server:
        silent = await server.peer(receive_buffer=4_096)
        await silent.upgrade()
        await settled(lambda: app.sent)  # every buffer is full
        await silent.frame(PING)
        await app.disconnected.wait()
        assert app.last_reason() == "write_buffer"


async def test_endless_fragments_are_cut_off() -> None:
    app = App()
    async with aimed(app, FAST) as server:
        flooder = await server.peer()
        await flooder.upgrade()
        await flooder.frame(TEXT, b"", fin=False)
        for _ in range(300):
            await flooder.frame(CONT, b"", fin=False)
        await app.disconnected.wait()
        assert app.last_reason() == "fragment_flood"


async def test_of_a_flood_of_tiny_frames_little_is_looked_at_before_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A read of asyncio's takes 256 KB, which are 43,000 frames and held the loop for 0.2 s."""
    monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 0.0)
    looked_at: Counter[int] = Counter()
    passes = Passes()

    def count(self: GuardedWebSocket, event: Any) -> None:
        looked_at[passes.count] += 1

    monkeypatch.setattr(GuardedWebSocket, "handle_pong", count)
    app = App()
    async with aimed(app, FAST) as server:
        flooder = await server.peer()
        await flooder.upgrade()
        with passes:
            await flooder.send(frame_bytes(PONG) * 40_000 + frame_bytes(TEXT, b"over"))
            await until(lambda: app.received)
        assert (looked_at.total(), app.received[0]["text"]) == (40_000, "over")
        assert max(looked_at.values()) <= 1_024 // len(frame_bytes(PONG)) + 1


async def test_messages_that_nobody_takes_stay_bytes_and_come_in_order() -> None:
    taking = asyncio.Event()
    numbers: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await taking.wait()
        while (message := await receive())["type"] != "websocket.disconnect":
            numbers.append(int(message["text"]))

    async with aimed(app, FAST) as server:
        flooder = await server.peer()
        await flooder.upgrade()
        frames = b"".join(frame_bytes(TEXT, b"%d" % number) for number in range(20_000))
        await flooder.send(frames)
        (protocol,) = server.server.server_state.connections
        assert isinstance(protocol, GuardedWebSocket)
        await settled(protocol.queue.qsize)
        assert 0 < protocol.queue.qsize() < 200
        taking.set()
        await flooder.frame(CLOSE, b"\x03\xe8")
        assert await flooder.close_code() == 1000
        assert numbers == [*range(20_000)]


async def test_the_answer_to_a_close_is_seen_behind_a_burst_that_nobody_takes() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        protocol: Any
        (protocol,) = server.server.server_state.connections
        await settled(protocol.queue.qsize)  # the burst waits
        await send({"type": "websocket.close", "code": 1000})

    settings = SocketConfig(ping_interval=60, close_timeout=120)
    async with aimed(app, settings) as server:
        client = await server.peer()
        await client.upgrade()
        await client.send(frame_bytes(TEXT, b"hello") * 5_000)
        assert await client.close_code() == 1000
        await client.frame(CLOSE, b"\x03\xe8")
        assert await client.ended()


async def test_a_few_fragments_are_one_message() -> None:
    app = App()
    async with aimed(app, FAST) as server:
        friendly = await server.peer()
        await friendly.upgrade()
        await friendly.frame(TEXT, "grüß"[:3].encode(), fin=False)
        await friendly.frame(CONT, "grüß"[3:].encode())
        await friendly.frame(CLOSE, b"\x03\xe8")
        assert await friendly.close_code() == 1000
        assert app.received[0]["text"] == "grüß"


@pytest.mark.parametrize("fragments", [[b"\xff\xfe"], [b"gr\xc3", b"("]])
async def test_invalid_utf8_is_closed_with_1007(fragments: list[bytes]) -> None:
    app = App()
    async with aimed(app, FAST) as server:
        bad = await server.peer()
        await bad.upgrade()
        for index, data in enumerate(fragments):
            await bad.frame(CONT if index else TEXT, data, fin=index == len(fragments) - 1)
        assert await bad.close_code() == 1007
        await app.disconnected.wait()
        assert all(message["type"] != "websocket.receive" for message in app.received)


@pytest.mark.parametrize("rest", [b"", frame_bytes(CONT, b"the rest")], ids=["whole", "fragment"])
async def test_invalid_utf8_right_before_a_close_is_no_accident(
    caplog: pytest.LogCaptureFixture, rest: bytes
) -> None:
    app = App()
    async with aimed(app, FAST) as server:
        bad = await server.peer()
        await bad.upgrade()
        text = frame_bytes(TEXT, b"\xff\xfe", fin=not rest)
        await bad.send(text + rest + frame_bytes(CLOSE))
        assert await bad.ended()
        await app.disconnected.wait()
        assert [message["type"] for message in app.received] == ["websocket.disconnect"]
        assert "Fatal error" not in caplog.text  # asyncio's words for an exception of ours


async def test_a_message_over_the_limit_is_closed_with_1009() -> None:
    async with aimed(App(), FAST, ws_max_size=1_000) as server:
        bad = await server.peer()
        await bad.upgrade()
        await bad.frame(TEXT, b"x" * 1_001)
        assert await bad.close_code() == 1009


async def test_an_unmasked_frame_is_closed_with_1002() -> None:
    async with aimed(App(), FAST) as server:
        bad = await server.peer()
        await bad.upgrade()
        await bad.send(b"\x81\x02hi")
        assert await bad.close_code() == 1002


@pytest.mark.parametrize("kind", ["websocket.send", "websocket.close"])
async def test_an_app_finds_a_socket_gone_that_was_closed_for_what_came(kind: str) -> None:
    """It may send before it has taken the disconnect, which waits behind messages."""
    found: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        try:
            await send({"type": kind, "bytes": b"late"})
        except Exception as error:
            found.set_result(error)

    async with aimed(app, FAST) as server:
        bad = await server.peer()
        await bad.upgrade()
        await bad.send(b"\x81\x02hi")  # unmasked
        assert await bad.close_code() == 1002
        assert isinstance(await found, OSError), "which means that the client is gone"


async def test_a_refusal_while_the_server_goes_is_no_fault_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked, refused, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await refused.wait()
        try:
            await send({"type": "websocket.http.response.start", "status": 503, "headers": []})
            await send({"type": "websocket.http.response.body", "body": b"no"})
        finally:
            ended.set()

    async with aimed(app, replace(FAST, handshake_timeout=60.0)) as server:
        client = await server.peer()
        asking = asyncio.create_task(client.upgrade())
        await asked.wait()
        (protocol,) = server.server.server_state.connections
        assert isinstance(protocol, GuardedWebSocket)
        refused.set()
        protocol.shutdown()
        await ended.wait()
        assert b" 500 " in await asking
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_compression_is_not_negotiated() -> None:
    async with aimed(App(), FAST) as server:
        client = await server.peer()
        head = await client.upgrade(headers="Sec-WebSocket-Extensions: permessage-deflate\r\n")
        assert b" 101 " in head
        assert b"deflate" not in head.lower()


async def test_an_app_that_never_answers_the_handshake_does_not_keep_the_socket() -> None:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "websocket.disconnect":
            pass

    async with aimed(never, FAST) as server:
        client = await server.peer()
        assert await client.upgrade() == b""
        assert server.aborts("handshake_timeout") == 1


async def test_a_header_line_over_8_kb_is_answered_with_431() -> None:
    async with aimed(App(), FAST) as server:
        client = await server.peer()
        head = await client.upgrade(headers=f"X-Long: {'x' * 9_000}\r\n")
        assert b" 431 " in head
        assert await client.ended()


async def test_a_bad_websocket_key_is_answered_with_400() -> None:
    async with aimed(App(), FAST) as server:
        client = await server.peer()
        await client.send(
            b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: no\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert b" 400 " in await client.head()


async def test_a_peer_that_half_closes_and_stops_reading_does_not_linger() -> None:
    settings = SocketConfig(ping_interval=60, write_stall=10, close_timeout=200 * MS)
    app = App(packets=10_000)
    async with aimed(app, settings) as server:
        client = await server.peer(receive_buffer=4_096)
        await client.upgrade()
        await settled(lambda: app.sent)  # every buffer is full
        client.sock.shutdown(1)
        await app.disconnected.wait()
        assert server.aborts("close_timeout") == 1


async def test_an_application_can_abort_its_socket() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        scope["extensions"][ABORT_EXTENSION]("because")
        assert (await receive())["reason"] == "because"

    async with aimed(app, FAST) as server:
        client = await server.peer()
        await client.upgrade()
        assert await client.ended()
        assert server.aborts("because") == 1


async def test_an_app_that_closes_on_a_peer_that_stopped_reading_is_rid_of_it() -> None:
    settings = SocketConfig(ping_interval=60, write_stall=10, close_timeout=200 * MS)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "bytes": bytes(1_000_000)})

    async with aimed(app, settings) as server:
        client = await server.peer(receive_buffer=4_096)
        await client.upgrade()
        await until(lambda: not server.server.server_state.connections)
