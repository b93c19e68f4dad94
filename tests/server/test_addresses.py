"""What clients of one address may do, and that nobody else hears of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
import websockets

from realtime_tts.config import AddressConfig, LimitsConfig, ServerConfig
from realtime_tts.errors import ConfigError
from realtime_tts.server import addresses
from realtime_tts.server.addresses import ClientAddresses, network_of
from tests.server.asking import answer_to, get
from tests.server.peers import RawPeer
from tests.server.speaking import speaking
from tests.server.talking import denied
from tests.waiting import SECONDS, until

KEY = "correct-horse-battery"
OTHER = "127.0.0.2"  # another address of this machine


def few(rate: float = 0.5, **fields: Any) -> ServerConfig:
    """Two connections at once (four times the rate), and then one every two seconds."""
    return ServerConfig(port=0, addresses=AddressConfig(connections_per_second=rate, **fields))


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("unix:" + "x" * 500, "unix:" + "x" * 59),
    ],
)
def test_an_ipv6_network_counts_as_one_address(host: str, network: str) -> None:
    assert network_of(host) == network


def test_of_more_addresses_than_are_known_the_one_gone_for_longest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(addresses, "_MOST", 3)
    known = ClientAddresses()
    first, second = known.of(("a", 1)), known.of(("b", 1))
    for name in ("c", "a", "d"):
        known.of((name, 1))
    assert known.of(("a", 2)) is first
    assert known.of(("b", 2)) is not second


def test_of_more_keys_than_are_known_the_one_unused_for_longest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(addresses, "_MOST", 2)
    known = ClientAddresses()
    first, second = known.of_key("first"), known.of_key("second")
    known.of_key("first")
    known.of_key("third")
    assert known.of_key("first") is first
    assert known.of_key("second") is not second


def test_a_trusted_proxy_is_an_address_or_a_network() -> None:
    AddressConfig(trusted_proxies=("10.0.0.0/8", "2001:db8::1"))
    with pytest.raises(ConfigError, match="a trusted proxy is an address or a network.*nginx"):
        AddressConfig(trusted_proxies=("nginx",))


async def test_an_address_that_opens_too_many_connections_is_told_so_and_others_are_not() -> None:
    async with speaking(few()) as server:
        found = [await get(server) for _ in range(3)]
        assert [status for status, _, _ in found] == [200, 200, 429]
        _, headers, body = found[-1]
        assert headers["retry-after"] == "1"
        error = json.loads(body)
        assert (error["code"], error["retryable"]) == ("too_many_connections", True)
        assert "--connection-rate" in error["message"]
        response = await denied(server.talk())
        assert response.status_code == 429
        assert (await get(server, source=OTHER))[0] == 200
        for probe in ("/livez", "/readyz", "/health"):
            assert (await get(server, probe))[0] == 200, "a flood is no reason for a restart"
        assert server.value("tts_refused_total", reason="too_many_connections") == 2


async def test_sessions_that_are_open_know_nothing_of_a_flood_of_their_own_address() -> None:
    async with speaking(few(1.0)) as server, server.talk() as talker:
        while (await get(server))[0] == 200:
            pass
        await talker.send("text", text="Hello.", end=True)
        assert (await talker.until("turn.done"))[-1]["reason"] == "complete"


async def test_requests_over_one_connection_count_too() -> None:
    async with speaking(few()) as server:
        peer = await RawPeer.connect(server.port)
        statuses = []
        for _ in range(3):
            await peer.send(b"GET /v1/voices HTTP/1.1\r\nHost: a\r\n\r\n")
            head = await peer.head()
            (length,) = (
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            body = await peer._exactly(length)
            statuses.append(int(head.split()[1]))
        assert statuses == [200, 200, 429]
        assert b"\r\nretry-after: 1" in head.lower()
        assert json.loads(body)["code"] == "too_many_requests"
        peer.sock.close()


async def test_requests_with_one_key_count_together_from_wherever_they_come() -> None:
    config = ServerConfig(port=0, api_keys=(KEY, "another-" + KEY), addresses=few().addresses)
    bearer = {"Authorization": f"Bearer {KEY}"}
    async with speaking(config) as server:
        sources = (f"127.0.0.{end}" for end in range(2, 9))
        found = [await get(server, headers=bearer, source=next(sources)) for _ in range(3)]
        assert [status for status, _, _ in found] == [200, 200, 429]
        assert "with this key" in json.loads(found[-1][2])["message"]
        another = {"Authorization": f"Bearer another-{KEY}"}
        assert (await get(server, headers=another, source=next(sources)))[0] == 200
        assert (await get(server, source=next(sources)))[0] == 401


async def test_a_token_counts_with_its_key() -> None:
    config = ServerConfig(port=0, api_keys=(KEY,), addresses=few().addresses)
    async with speaking(config) as server:
        bearer = {"Authorization": f"Bearer {KEY}"}
        token = (await answer_to(server, "POST", "/v1/token", headers=bearer)).json()["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        found = [await get(server, headers=bearer, source=OTHER) for _ in range(2)]
        assert [status for status, _, _ in found] == [200, 429]


async def test_only_a_trusted_proxy_says_who_asks() -> None:
    async with speaking(few(trusted_proxies=(OTHER,))) as server:

        def asked(client: str, source: str) -> Any:
            return get(server, headers={"X-Forwarded-For": client}, source=source)

        for client in ("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"):
            assert (await asked(client, OTHER))[0] == 200, "each of them has asked once"
        assert (await asked("192.0.2.1", OTHER))[0] == 200
        assert (await asked("192.0.2.1", OTHER))[0] == 429
        found = [(await asked(f"192.0.2.{end}", "127.0.0.3"))[0] for end in (10, 11, 12)]
        assert found == [200, 200, 429], "what others claim counts for nothing"


async def test_of_too_many_handshakes_of_an_address_the_oldest_is_dropped() -> None:
    config = ServerConfig(port=0, addresses=AddressConfig(handshakes=3))
    async with speaking(config) as server:
        half_open = [await RawPeer.connect(server.port) for _ in range(5)]
        assert (await get(server))[0] == 200, "who means it is done with a handshake soon"
        heads = [await peer.head() for peer in half_open[:3]]
        assert all(b" 429 " in head for head in heads), heads
        assert not await half_open[4].ended(0.2)
        async with asyncio.timeout(SECONDS):
            async with server.talk() as talker:
                await talker.send("text", text="Hello.", end=True)
                await talker.until("turn.done")
        for peer in half_open:
            peer.sock.close()
        mine = server.running.front.addresses.of(("127.0.0.1", 0))
        await until(lambda: not mine._handshakes)


async def test_sockets_without_a_key_are_few_for_each_address() -> None:
    config = ServerConfig(port=0, api_keys=(KEY,), addresses=AddressConfig(sockets_without_key=2))
    path = "/v1/text-to-speech/tenor/stream-input"

    async def opened(source: str) -> bytes:
        peer = await RawPeer.connect(server.port, source=source)
        peers.append(peer)
        return await peer.upgrade(path)

    peers: list[RawPeer] = []
    async with speaking(config) as server:
        heads = [await opened("127.0.0.1") for _ in range(3)]
        assert [head.split()[1] for head in heads] == [b"101", b"101", b"429"]
        assert b" 101 " in await opened(OTHER)
        for peer in peers:
            peer.sock.close()


async def test_the_tenth_bad_message_counts_over_reconnects() -> None:
    limits = LimitsConfig(max_bad_messages=4)
    async with speaking(ServerConfig(port=0, limits=limits)) as server:

        async def bad(count: int) -> tuple[list[str], int | None]:
            """What garbage is answered with; the close code, if the server closes."""
            async with server.talk() as talker:
                for _ in range(count):
                    await talker.socket.send("garbage")
                codes: list[str] = []
                while len(codes) < count:
                    codes.append((await talker.next())["code"])
                with contextlib.suppress(websockets.ConnectionClosed):
                    await talker.send("text", text="Hello.", end=True)
                found = await talker.next()
                if found["type"] != "error":
                    return codes, None
                await talker.rest()
                return [*codes, found["code"]], talker.socket.close_code

        assert await bad(3) == (["bad_json"] * 3, None)
        assert await bad(1) == (["bad_json", "too_many_bad_messages"], 1008)
        async with server.talk() as innocent:
            await innocent.send("text", text="Hello.", end=True)
            assert (await innocent.until("turn.done"))[-1]["reason"] == "complete"
        assert await bad(1) == (["bad_json", "too_many_bad_messages"], 1008)


async def test_bad_messages_are_forgotten_after_their_window() -> None:
    limits = LimitsConfig(max_bad_messages=2, bad_message_window_ms=50)
    async with speaking(ServerConfig(port=0, limits=limits)) as server:
        for _ in range(3):
            async with server.talk() as talker:
                await talker.socket.send("garbage")
                assert (await talker.next())["code"] == "bad_json"
                await talker.send("text", text="Hello.", end=True)
                assert (await talker.until("turn.done"))[-1]["reason"] == "complete"
            await asyncio.sleep(0.06)


async def test_three_hundred_sockets_of_one_machine_are_no_flood() -> None:
    async with speaking() as server:
        url = server.running.websocket_url
        sockets = await asyncio.gather(
            *(websockets.connect(url, compression=None, open_timeout=30) for _ in range(300))
        )
        assert server.running.front.sessions == 300
        await asyncio.gather(*(socket.close() for socket in sockets))
