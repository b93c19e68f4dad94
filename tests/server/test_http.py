"""GuardedHttp: half a request does not stay, and headers have an end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from realtime_tts.config import SocketConfig
from tests.server.apps import aimed
from tests.waiting import until

MS = 0.001
FAST = SocketConfig(
    handshake_timeout=300 * MS, body_timeout=400 * MS, write_stall=300 * MS, close_timeout=200 * MS
)

CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def upload(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await hello(scope, receive, send)


async def test_a_whole_request_is_answered_and_the_socket_reused() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        for _ in range(3):
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b" 200 " in await client.head()
            await asyncio.sleep(400 * MS)  # longer than the header's deadline: none is running


@pytest.mark.alone
async def test_half_sent_requests_are_all_gone_in_time() -> None:
    async with aimed(hello, FAST) as server:
        clients = [await server.peer() for _ in range(100)]
        for client in clients:
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        answers = await asyncio.gather(*(client.head() for client in clients))
        assert all(b" 408 " in answer for answer in answers)
        await until(lambda: not server.server.server_state.connections)


async def test_a_drip_of_bytes_does_not_extend_the_deadline() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        await client.send(b"GET / HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            for _ in range(200):  # ten seconds, and far less than a header may have
                await asyncio.sleep(50 * MS)
                await client.send(b"X-A: b\r\n")


async def test_blank_lines_do_not_extend_it_either() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await client.head()
        await client.send(b"\r\n")
        assert await client.ended()


async def test_a_silent_socket_is_dropped() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        assert await client.ended()
        assert server.aborts("silent") == 1


async def test_an_endless_header_is_answered_with_431() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        await client.send(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 40_000)
        assert b" 431 " in await client.head()
        assert await client.ended()


async def test_a_large_header_in_one_piece_is_answered_with_431() -> None:
    reached = False

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal reached
        reached = True

    async with aimed(app, FAST) as server:
        client = await server.peer()
        fields = "".join(f"X-{i}: {'x' * 1_000}\r\n" for i in range(40))
        await client.send(f"GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode())
        assert b" 431 " in await client.head()
        assert not reached


async def test_a_large_header_of_an_upgrade_is_answered_with_431() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        fields = "".join(f"X-{i}: {'x' * 1_000}\r\n" for i in range(40))
        assert b" 431 " in await client.upgrade(headers=fields)


@pytest.mark.parametrize("trailer", [b"X-Field: more\r\n" * 2_700, b"X-Long: " + b"x" * 40_000])
async def test_an_endless_trailer_is_answered_with_431(trailer: bytes) -> None:
    began = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["body"] == b"hi"
        began.set()
        await receive()

    async with aimed(app, FAST) as server:
        client = await server.peer()
        await client.send(CHUNKED + b"2\r\nhi\r\n0\r\n")
        await began.wait()
        await client.send(trailer)
        assert b" 431 " in await client.head()
        assert await client.ended()


async def test_a_body_in_tiny_chunks_with_a_trailer_is_taken() -> None:
    async with aimed(upload, FAST) as server:
        client = await server.peer()
        for _ in range(2):
            await client.send(CHUNKED + b"1\r\nx\r\n" * 10_000)
            await client.send(b"0\r\nX-Checksum: 7\r\n\r\n")
            assert b" 200 " in await client.head()


async def test_a_body_that_never_ends_is_cut_off() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx")
        assert b" 200 " in await client.head()
        assert await client.ended()


async def test_a_body_that_comes_too_slowly_is_answered_with_408() -> None:
    async with aimed(upload, FAST) as server:
        client = await server.peer()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx")
        assert b" 408 " in await client.head()
        assert await client.ended()


async def test_an_answer_nobody_reads_is_given_up() -> None:
    async def large(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(400):
            await send({"type": "http.response.body", "body": bytes(65_536), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with aimed(large, FAST) as server:
        client = await server.peer(receive_buffer=4_096)
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await until(lambda: server.aborts("slow_http_reader"))


async def test_http_1_0_gets_an_answer_of_unknown_length_without_chunks() -> None:
    async def sound(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in (b"one ", b"two ", b""):
            await send({"type": "http.response.body", "body": piece, "more_body": bool(piece)})

    async with aimed(sound, FAST) as server:
        client = await server.peer()
        await client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert b"transfer-encoding" not in await client.head()
        assert await client.rest() == b"one two "


async def test_http_1_0_gets_an_answer_of_known_length() -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"4")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"page"})

    async with aimed(page, FAST) as server:
        client = await server.peer()
        await client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert b"content-length: 4" in await client.head()
        assert await client.rest() == b"page"


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
"""What Java's HttpClient and `curl --http2` send with their first request."""


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body, more = scope["path"].encode(), True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_an_offer_of_http_2_is_declined_and_the_request_is_answered(size: int) -> None:
    requests = (
        b"POST /one HTTP/1.1\r\nHost: a\r\n" + OFFER + b"Content-Length: 5\r\n\r\n-body"
        b"GET /two HTTP/1.1\r\nHost: a\r\n" + OFFER + b"\r\n"
        b"POST /three HTTP/1.1\r\nHost: a\r\n" + OFFER + b"Transfer-Encoding: chunked\r\n\r\n"
        b"1\r\n-\r\n2\r\nin\r\n0\r\n\r\n"
        b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n\r\n"
    )
    async with aimed(echo, FAST) as server:
        client = await server.peer()
        for at in range(0, len(requests), size):
            await client.send(requests[at : at + size])
        answers = (await client.rest()).split(b"HTTP/1.1 200 OK")
        assert [answer.rpartition(b"\r\n\r\n")[2] for answer in answers] == [
            b"",
            b"/one-body",
            b"/two",
            b"/three-in",
            b"/last",
        ]


async def test_a_large_header_with_such_an_offer_is_answered_with_431() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        field = b"X-Long: " + b"x" * 40_000
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + OFFER + field + b"\r\n\r\n")
        assert b" 431 " in await client.head()


async def test_an_upgrade_with_two_headers_connection_is_one() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})

    async with aimed(app, FAST) as server:
        client = await server.peer()
        assert b" 101 " in await client.upgrade(headers="Connection: keep-alive\r\n")


async def test_garbage_is_answered_with_400() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        await client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 not http\r\n\r\n")
        assert b" 400 " in await client.head()


async def test_two_lengths_of_one_body_are_answered_with_400() -> None:
    async with aimed(hello, FAST) as server:
        client = await server.peer()
        await client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        )
        assert b" 400 " in await client.head()


async def test_a_reader_who_is_slow_but_reads_is_kept() -> None:
    """A player that takes sound as it plays: steady, and far slower than the server."""

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not server.server.should_exit:
            await send({"type": "http.response.body", "body": bytes(4_096), "more_body": True})
            await asyncio.sleep(MS)
        await send({"type": "http.response.body", "body": b""})

    patient = replace(FAST, write_stall=1.0)  # a busy machine may stop everybody for a while
    async with aimed(endless, patient) as server:
        client = await server.peer(receive_buffer=4_096)
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        loop = asyncio.get_running_loop()
        end = loop.time() + 3.0
        while loop.time() < end:
            assert await loop.sock_recv(client.sock, 8_192), "given up"
            await asyncio.sleep(40 * MS)
        assert server.aborts("slow_http_reader") == 0
        client.abort()
