"""A server with several fronts, as its clients and its operator see it: real processes, real
sockets, and what the end of each process costs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import ssl
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import psutil
import pytest
import websockets

from realtime_tts.config import ServerConfig, SocketConfig
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.fronts.child import FrontChild
from realtime_tts.fronts.process import share_of_addresses
from realtime_tts.fronts.supervisor import Supervisor
from realtime_tts.fronts.wire import FrontSpec
from realtime_tts.metrics import Metrics
from realtime_tts.server.occupancy import Occupancy
from realtime_tts.server.self_signed import write_self_signed
from tests.engine.faulty import files
from tests.fronts.running import Server, Session, in_folder, serving, sessions
from tests.server.talking import denied
from tests.serving import serve_command
from tests.waiting import SECONDS, until

LONG = "one " * 40  # eight seconds of tones


async def test_every_front_has_as_many_sockets_as_the_next() -> None:
    async with serving(fronts=4) as server, sessions(server, 40) as opened:
        assert [server.sockets_of(front) for front in server.fronts] == [10] * 4
        for one in opened[::2]:
            await one.close()
        await server.counted()
        async with sessions(server, 20):
            assert [server.sockets_of(front) for front in server.fronts] == [10] * 4


async def test_a_front_that_is_killed_costs_its_own_sockets_and_is_back() -> None:
    async with serving() as server, sessions(server, 8) as opened:
        for one in opened:
            await one.say(LONG)
        await until(lambda: all(one.samples for one in opened))
        await server.until("tts_active_turns", 8)
        victim = server.fronts[0]
        victim.kill()
        killed = time.monotonic()
        await until(lambda: not victim.is_running())  # a socket handed over before is its own
        async with sessions(server, 1) as (late,):  # nobody is refused meanwhile
            await late.say("One, two.")
            assert (await late.until("turn.done"))["reason"] == "complete"
        await until(lambda: sum(one.lost for one in opened) == 4)
        await server.until("tts_active_turns", 4)
        assert time.monotonic() - killed < 6, "its turns are cancelled, not spoken to their end"
        left = [one for one in opened if not one.lost]
        for one in left:
            done = await one.until("turn.done")
            assert done["reason"] == "complete" and done["samples"] == one.samples
        await server.until("tts_fronts", 2)
        assert await server.value("tts_front_restarts_total") == 1
        await server.counted()
        async with sessions(server, 4):
            assert [server.sockets_of(front) for front in server.fronts] == [4, 4]


def test_a_front_that_has_just_started_gets_no_socket_before_it_is_ready(tmp_path: Path) -> None:
    """Unless there is no other."""
    occupancy = Occupancy.make(3)
    spec = FrontSpec(ServerConfig(), (EngineConfig(kind="fake"),), 3, tmp_path, occupancy.file)
    supervisor = Supervisor(spec, occupancy, Metrics(), lambda *stage: None)
    for number, load in ((1, 7), (2, 0), (3, 5)):
        front = SimpleNamespace(number=number, load=load, silence=0.0, listening=True, ready=True)
        supervisor._fronts[number] = cast(FrontChild, front)
    supervisor._fronts[2].ready = False
    assert [front.number for front in supervisor.fronts_by_load()] == [3, 1, 2]
    occupancy.close()


def test_a_front_is_not_killed_while_its_requests_may_still_end(tmp_path: Path) -> None:
    """Uploads, say: they get a second more than their sockets get to close."""
    occupancy = Occupancy.make(2)
    config = ServerConfig(drain_seconds=30.0, socket=SocketConfig(close_timeout=20.0))
    spec = FrontSpec(config, (EngineConfig(kind="fake"),), 2, tmp_path, occupancy.file)
    supervisor = Supervisor(spec, occupancy, Metrics(), lambda *stage: None)
    supervisor._drained = 1
    assert supervisor._patience > 30 + 20 + 1
    occupancy.close()


async def test_a_front_that_starts_while_an_engine_is_away_serves_with_the_others() -> None:
    async with serving(fronts=1, engines=2) as server:
        (front,), away = server.fronts, server.engines[0]
        away.suspend()
        front.kill()
        await until(lambda: not front.is_running())
        for _ in range(60):
            with contextlib.suppress(httpx2.HTTPError):
                if (await server.get("/readyz")).status_code == 200:
                    break
            await asyncio.sleep(0.1)
        async with sessions(server, 4) as opened:
            await asyncio.gather(*(one.say("One, two.") for one in opened))
            ends = [(await one.until("turn.done"))["reason"] for one in opened]
        assert ends == ["complete"] * 4
        assert away.status() == psutil.STATUS_STOPPED, "it was not replaced meanwhile"
        away.resume()  # so that it sees the end of its parent, which is killed


async def test_a_front_that_hangs_is_killed_and_gets_no_sockets_while_it_does() -> None:
    async with serving(hang=3.0) as server:
        first, other = server.fronts
        first.suspend()
        await asyncio.sleep(1.5)
        async with sessions(server, 4) as opened:
            assert server.sockets_of(other) == 4 and not any(one.lost for one in opened)
            await server.until("tts_front_restarts_total", 1)
            await server.until("tts_fronts", 2)
            assert not any(one.lost for one in opened)
        assert not first.is_running() and other.is_running()


async def speak_at_once(opened: list[Session]) -> None:
    """Each front then gives each engine half of its turns: it knows of none of the other front's,
    which engines tell twice a second."""
    await asyncio.gather(*(one.say(LONG[:80]) for one in opened))
    await until(lambda: all(one.samples for one in opened))


def assert_half_moved(opened: list[Session]) -> None:
    """Each engine had half of the turns, but for one of each of the two fronts, which began when a
    load had just come."""
    moves = [one.of("turn.done")[-1].get("moves", 0) for one in opened]
    assert set(moves) == {0, 1} and abs(moves.count(1) - len(opened) // 2) <= 2, moves


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGUSR1], ids=["killed", "told"])
async def test_turns_of_all_fronts_outlive_an_engine_that_ends_or_is_told_to_make_room(
    how: signal.Signals,
) -> None:
    async with serving(engines=2) as server, sessions(server, 8) as opened:
        await speak_at_once(opened)
        server.engines[0].send_signal(how)
        await server.until("tts_engine_restarts_total", 1)
        for one in opened:
            done = await one.until("turn.done")
            assert done["reason"] == "complete" and done["samples"] == one.samples
        assert not any(one.of("error") for one in opened)
        assert_half_moved(opened)


async def test_a_limit_of_sessions_holds_over_all_fronts_but_for_one_of_each_in_a_burst() -> None:
    async with serving(fronts=3, max_sessions=6) as server:
        async with sessions(server, 6) as opened:
            for _ in range(4):
                response = await denied(websockets.connect(server.socket_url, proxy=None))
                assert response.status_code == 503
            assert await server.value("tts_sessions") == 6
            await opened[2].close()
            await until(lambda: server.occupancy.sessions == 5)
            async with sessions(server, 1):
                await denied(websockets.connect(server.socket_url, proxy=None))
        await server.until("tts_sessions", 0)
        sockets = await burst(server, 60)
        assert 6 <= len(sockets) <= 6 + 2
        await asyncio.gather(*(socket.close() for socket in sockets))


async def burst(server: Server, count: int) -> list[websockets.ClientConnection]:
    """Those of so many sockets, asked for at once, that are let in."""

    async def come() -> websockets.ClientConnection | None:
        with contextlib.suppress(websockets.InvalidStatus):
            return await websockets.connect(server.socket_url, proxy=None)
        return None

    return [one for one in await asyncio.gather(*(come() for _ in range(count))) if one]


async def test_every_front_and_the_agent_tell_the_load_of_all(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    async with serving(fronts=3, max_sessions=40, agent_port=port) as server:
        assert await agent(port) == "ready up 40%\n"
        async with sessions(server, 6) as opened:
            for one in opened[:4]:
                await one.say(LONG)
            await server.until("tts_active_turns", 4)
            told = await agreed_load(server)
            assert {name: told[0][name] for name in ("capacity", "active", "sessions")} == {
                "capacity": await server.value("tts_capacity_turns"),
                "active": 4,
                "sessions": 6,
            }
            assert await agent(port) == "ready up 34%\n"
            server.process.send_signal(signal.SIGTERM)
            await until(partial(answers, port, "drain\n"))
            for one in opened[:4]:
                assert (await one.until("turn.done"))["reason"] == "complete"


async def agreed_load(server: Server) -> list[Any]:
    """What six asks hear once all hear the same: engines say twice a second how they are."""
    async with asyncio.timeout(SECONDS):
        while True:
            told = [(await server.get("/v1/load")).json() for _ in range(6)]
            if all(one == told[0] and one["active"] == 4 for one in told):
                return told


async def answers(port: int, words: str) -> bool:
    return await agent(port) == words


async def agent(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


@pytest.mark.parametrize("fronts", [2, 3, 8])
def test_fronts_together_let_an_address_do_what_one_would(fronts: int) -> None:
    whole = ServerConfig().addresses
    share = share_of_addresses(ServerConfig(), fronts).addresses
    assert share.connections_per_second * fronts == pytest.approx(whole.connections_per_second)
    for name in ("handshakes", "sockets_without_key"):
        most = getattr(whole, name)
        assert most <= getattr(share, name) * fronts < most + fronts, name
    assert share.trusted_proxies == whole.trusted_proxies


async def test_metrics_are_the_sum_of_all_fronts_and_never_go_back() -> None:
    async with serving() as server:
        async with sessions(server, 6) as opened:
            for one in opened:
                await one.say("One, two.")
                await one.until("turn.done")
            done = 'tts_turns_total{reason="complete"}'
            for _ in range(4):  # whichever front answers
                assert await server.value(done) == 6
                assert await server.value("tts_sessions") == 6
            packets = await server.value("tts_packets_total")
            assert packets >= 6
            server.fronts[0].kill()
            await server.until("tts_front_restarts_total", 1)
            assert await server.value(done) == 6
            assert await server.value("tts_packets_total") == packets
            await server.until("tts_sessions", 3)


async def test_sigterm_lets_turns_of_all_fronts_finish_and_leaves_nothing(tmp_path: Path) -> None:
    """… but a log whose lines name the front."""
    async with in_folder(str(tmp_path)), serving() as server, sessions(server, 6) as opened:
        assert files(tmp_path)
        processes = server.main.children(recursive=True)
        assert len(processes) == 3
        for one in opened:
            await one.say("one " * 25)
        await until(lambda: all(one.samples for one in opened))
        server.process.send_signal(signal.SIGTERM)
        await until(partial(drains, server))
        for one in opened:
            done = await one.until("turn.done")
            assert done["reason"] == "complete" and done["samples"] == one.samples
            await one.task
            assert one.socket.close_code == 1001
        _, errors = await server.process.communicate()
        assert server.process.returncode == 0
        assert not any(one.is_running() for one in processes)
    assert not files(tmp_path)
    assert_lines_name_the_front(errors)


async def drains(server: Server) -> bool:
    return (await server.get("/readyz")).status_code == 503


def assert_lines_name_the_front(errors: bytes) -> None:
    lines = [json.loads(line) for line in errors.decode().splitlines()]
    opened = Counter(line["front"] for line in lines if line["event"] == "session.open")
    assert opened == {1: 3, 2: 3}
    assert [line for line in lines if line["event"] == "server.ended"]
    (ready,) = [line for line in lines if line["event"] == "engine.ready"]
    assert ready["slots"] and "front" not in ready


async def test_a_second_signal_ends_turns_at_once() -> None:
    async with serving() as server, sessions(server, 4) as opened:
        for one in opened:
            await one.say(LONG)
        await until(lambda: all(one.samples for one in opened))
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        await until(partial(drains, server))
        assert server.process.returncode is None
        server.process.send_signal(signal.SIGTERM)
        for one in opened:
            assert (await one.until("turn.done"))["reason"] == "closed"
        assert await server.process.wait() == 0
        assert time.monotonic() - begun < 5


def alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


async def test_what_one_front_is_given_the_others_know(tmp_path: Path) -> None:
    """Voices are a folder, and tokens are signed: any front may get the next request."""
    key = "correct-horse-battery"
    headers = {"authorization": f"Bearer {key}"}
    async with serving(voices=str(tmp_path), api_keys=(key,)) as server:
        voice = {"name": "anna", "embedding": [0.25, -0.5] * 32}
        made = await server.get("/v1/voices", method="POST", json=voice, headers=headers)
        assert made.status_code == 201, made.text
        for _ in range(4):
            listed = await server.get("/v1/voices", headers=headers)
            assert "anna" in listed.json()["voices"]
        once = "/v1/single-use-token/tts_websocket"
        token = (await server.get(once, method="POST", headers=headers)).json()["token"]
        url = f"{server.socket_url}?voice=anna"
        bearer = {"authorization": f"Bearer {token}"}
        taken = []
        for _ in range(4):
            try:
                async with websockets.connect(url, additional_headers=bearer, proxy=None):
                    taken.append(True)
            except websockets.InvalidStatus as refused:
                taken.append(refused.response.status_code != 401)
        assert taken == [True, False, False, False]


async def test_sockets_that_are_handed_over_speak_tls_and_a_kill_leaves_nothing(
    tmp_path: Path,
) -> None:
    made = write_self_signed(tmp_path)
    trust = ssl.create_default_context(cafile=made.certificate)
    with tempfile.TemporaryDirectory() as folder:  # short: there are sockets in it
        private = Path(folder)
        async with (
            in_folder(folder),
            serving(tls=(made.certificate, made.key)) as server,
            sessions(server, 4, ssl=trust) as opened,
        ):
            for one in opened:
                await one.say("One, two.")
            for one in opened:
                assert (await one.until("turn.done"))["reason"] == "complete"
            given = [server.sockets_of(front) for front in server.fronts]
            assert sum(given) == 4 and all(given), "both fronts have some"
            processes = server.main.children(recursive=True)
            assert len(processes) == 3 and files(private)
            server.process.kill()
            await until(lambda: not any(alive(one) for one in processes))
            assert not files(private)


async def test_fronts_of_a_real_voice_load_no_torch_and_their_parent_no_application() -> None:
    """Each would take 200 MB, and two seconds more to start; the parent half a second."""
    async with serving(real=True) as server:
        assert not any("libavcodec" in mapped.path for mapped in server.main.memory_maps())
        for front in server.fronts:
            libraries = [mapped.path for mapped in front.memory_maps()]
            assert any("libavcodec" in path for path in libraries)
            assert not any("libtorch" in path for path in libraries)
        (engine,) = server.engines
        assert any("libtorch" in mapped.path for mapped in engine.memory_maps())
        async with sessions(server, 1) as (one,):
            await one.say("Hello there.")
            assert (await one.until("turn.done"))["reason"] == "complete" and one.samples


async def test_a_server_that_cannot_load_ends_with_1_and_says_why_once(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *serve_command("--fronts", "2", "--engine", "process", "--model", str(tmp_path)),
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        _, errors = await process.communicate()
    assert process.returncode == 1
    lines = [json.loads(line) for line in errors.decode().splitlines()]
    told = [line for line in lines if line["event"] == "engine.load_failed"]
    assert len(told) == 1 and f"{tmp_path / 'config.json'} is missing" in told[0]["error"]
