"""SIGTERM in a process of its own: turns finish, sockets are closed, the exit code is 0."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import random
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import websockets

from realtime_tts.config import ServerConfig, SocketConfig
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.errors import ConfigError
from realtime_tts.server.listening import bind
from tests.server.peers import Connecting, RawPeer
from tests.server.speaking import speaking
from tests.waiting import SECONDS, until

SERVER = """
import gc
import sys
import time
from tts_scheduler import SchedulerConfig
from realtime_tts.config import ServerConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.logs import configure_logging
from realtime_tts.metrics import Metrics
from realtime_tts.server.run import serve
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer

def load(progress):
    if sys.argv[2] == "broken":
        raise OSError("no such checkpoint")
    if sys.argv[2] == "slow":
        print("loading", flush=True)
        time.sleep(60)
    global imported, engine
    imported = gc.get_freeze_count()
    engine = FakeEngine(FakeEngineConfig(step_seconds=0.005, frames_per_token=1))
    return engine

def ready(port):
    loaded = not any(one is engine for one in gc.get_objects())
    print(port, imported, int(loaded), flush=True)

configure_logging("json")
metrics = Metrics()
code = serve(
    ServerConfig(port=0, drain_seconds=float(sys.argv[1])),
    lambda: InProcessEngine(load, SchedulerConfig(slots=64), observer=metrics),
    lambda: Qwen2Tokenizer({c: i for i, c in enumerate(ALPHABET)}, []),
    metrics,
    on_ready=ready,
)
sys.exit(code)
"""


@contextlib.asynccontextmanager
async def server_process(
    drain_seconds: float, kind: str = "fake"
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SERVER,
        str(drain_seconds),
        kind,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def url_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS):
        port, imported, loaded = (await process.stdout.readline()).split()
        assert int(imported) > 0, "what was imported is to be kept from the garbage collector"
        assert int(loaded) == 1, "so is what was loaded"
        return f"ws://127.0.0.1:{int(port)}/v1/tts"


async def drains(url: str) -> bool:
    """Whether the server has heard the first signal."""
    host = url.removeprefix("ws://").removesuffix("/v1/tts")
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
        return (await http.get(f"http://{host}/readyz")).status_code == 503


async def speak(url: str, text: str, on_air: asyncio.Event) -> tuple[dict[str, Any], int, int]:
    """One session with one turn: its turn.done, the samples received, the close code."""
    samples, done = 0, {}
    async with websockets.connect(url) as socket:
        await socket.send(json.dumps({"type": "text", "text": text, "end": True}))
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                raw = await socket.recv()
                if isinstance(raw, bytes):
                    samples += len(raw) // 2
                    on_air.set()
                elif json.loads(raw)["type"] == "turn.done":
                    done = json.loads(raw)
        assert socket.close_code is not None
        return done, samples, socket.close_code


async def test_sigterm_lets_every_turn_finish_and_exits_with_0() -> None:
    rng = random.Random(1)
    async with server_process(20) as process:
        url = await url_of(process)
        lengths = [rng.randint(40, 70) for _ in range(20)]  # 3 to 6 s each
        events = [asyncio.Event() for _ in lengths]
        sessions = [
            asyncio.create_task(speak(url, "x" * length, event))
            for length, event in zip(lengths, events, strict=True)
        ]
        await asyncio.gather(*(event.wait() for event in events))
        process.send_signal(signal.SIGTERM)
        for length, session in zip(lengths, sessions, strict=True):
            done, samples, close_code = await session
            assert done["reason"] == "complete"
            assert samples == done["samples"] == length * 1_920
            assert close_code == 1001
        assert await process.wait() == 0


@pytest.mark.parametrize("how", ["deadline", "second signal"])
async def test_what_cannot_finish_is_closed_properly(how: str) -> None:
    async with server_process(0.3 if how == "deadline" else 60) as process:
        url = await url_of(process)
        on_air = asyncio.Event()
        session = asyncio.create_task(speak(url, "x" * 500, on_air))
        await on_air.wait()
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        if how == "second signal":
            await until(lambda: drains(url))
            assert process.returncode is None
            process.send_signal(signal.SIGTERM)
        done, samples, close_code = await session
        assert (done["reason"], close_code) == ("closed", 1001)
        assert samples == done["samples"]
        assert await process.wait() == 0
        assert time.monotonic() - started < 20


async def test_an_idle_server_stops_at_once_at_ctrl_c() -> None:
    async with server_process(30) as process:
        await url_of(process)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
        assert time.monotonic() - started < 15


async def test_a_server_that_cannot_load_exits_with_1_and_says_why() -> None:
    async with server_process(1, "broken") as process:
        async with asyncio.timeout(SECONDS):
            _, stderr = await process.communicate()
        assert process.returncode == 1
        lines = [json.loads(line) for line in stderr.decode().splitlines()]
        assert any("no such checkpoint" in line.get("exception", "") for line in lines)


async def test_a_server_that_is_still_loading_stops_at_once() -> None:
    async with server_process(30, "slow") as process:
        assert process.stdout is not None
        async with asyncio.timeout(SECONDS):
            assert await process.stdout.readline() == b"loading\n"
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
        assert time.monotonic() - started < 20


def test_an_address_that_is_taken_is_a_config_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}"):
            bind(ServerConfig(port=port))


def test_the_second_of_two_servers_that_start_together_is_told_so_before_it_loads() -> None:
    (first,) = bind(ServerConfig(port=0))
    with first:
        port = first.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}: .* another server"):
            bind(ServerConfig(port=port))


def test_a_port_that_is_not_for_this_user_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: socket.socket, address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(ConfigError, match=r"port 443: Permission denied\. .*CAP_NET_BIND_SERVICE"):
        bind(ServerConfig(port=443))


@pytest.mark.parametrize("host", ["a..b", "a" * 64], ids=["empty-label", "long-label"])
def test_what_can_be_no_name_of_a_host_is_a_config_error(host: str) -> None:
    with pytest.raises(ConfigError, match="no name of a host"):
        bind(ServerConfig(host=host))


async def test_no_packet_waits_for_an_acknowledgement_of_the_one_before() -> None:
    """Nagle's algorithm is off for accepted connections; with it a first packet is 40 ms late."""
    (listener,) = bind(ServerConfig(host="127.0.0.1", port=0))
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: accepted.put(writer), sock=listener)
    async with server:
        _, client = await asyncio.open_connection(*listener.getsockname())
        writer = await accepted.get()
        connection = writer.get_extra_info("socket")
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        client.close()
        writer.close()


def test_all_addresses_of_a_host_share_one_port_and_the_kernels_timeout() -> None:
    listeners = bind(ServerConfig(host="localhost", port=0))
    try:
        assert len({listener.getsockname()[1] for listener in listeners}) == 1
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            for listener in listeners:
                timeout = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                assert timeout == 20_000
    finally:
        for listener in listeners:
            listener.close()


async def test_a_connection_waits_for_its_next_request(peer: Connecting) -> None:
    """Longer than any usual client keeps it, so that no request meets the close."""
    async with speaking() as server:
        assert server.running.server.config.timeout_keep_alive == 75
    briefly = ServerConfig(port=0, socket=SocketConfig(keep_alive=0.3))
    async with speaking(briefly) as server:
        client = await peer(server.port)
        await ask(client)
        begun = time.monotonic()
        assert await client.ended() and time.monotonic() - begun > 0.2


async def test_a_drain_keeps_no_connection_for_another_request(peer: Connecting) -> None:
    """Who keeps one would be refused on it until the end, and never ask another server."""
    engine = FakeEngineConfig(step_seconds=0.1, frames_per_token=1)
    async with speaking(engine=engine) as server, server.talk() as one:
        await one.send("text", text="This turn goes on. " * 20)
        await one.until("turn.started")
        idle, silent, slow = [await peer(server.port) for _ in range(3)]
        await ask(idle)
        await ask(slow)
        await slow.send(REQUEST[:9])
        connections = server.running.server.server_state.connections
        await until(lambda: any(getattr(one, "_waiting_bytes", 0) for one in connections))
        server.running.server.request_drain()
        assert await idle.ended()
        new = await peer(server.port)
        await ask(new)
        await ask(silent)  # its first request may have been on the way
        await ask(slow, REQUEST[9:])
        assert [await each.ended() for each in (new, silent, slow)] == [True] * 3
        assert server.running.front.sessions == 1


REQUEST = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def ask(client: RawPeer, request: bytes = REQUEST) -> None:
    """One request that is answered; another may follow."""
    await client.send(request)
    head = (await client.head()).lower()
    assert b" 200 " in head and b"connection: close" not in head
