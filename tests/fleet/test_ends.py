"""What the end of each part of a fleet costs: servers that drain, are replaced and are killed, the
ingress, and clients that stop reading."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
import websockets

from realtime_tts.errors import ConfigError
from realtime_tts.fleet.haproxy import IngressConfig
from realtime_tts.fleet.ingress import Ingress
from realtime_tts.fleet.members import Member, parse_member, read_members
from tests.fleet.running import (
    LONG,
    TEN_SECONDS,
    fleet,
    free_port,
    ingress_running,
    leaves_a_client_that_stops_reading,
    listening,
    member,
    open_session,
    server,
    server_process,
    until_ready,
)
from tests.fronts.running import Session
from tests.waiting import until


async def complete(session: Session) -> bool:
    done = await session.until("turn.done")
    return done["reason"] == "complete" and done["samples"] == session.samples


async def test_a_drain_loses_no_turn_and_new_sessions_go_elsewhere() -> None:
    async with fleet(8, 8) as found:
        opened = [await found.open() for _ in range(8)]
        for one in opened:
            await one.say(LONG)
        await until(lambda: all(one.samples for one in opened))
        draining, other = found.servers
        assert draining.front.sessions == 4
        draining.front.drain()
        for _ in range(8):  # before HAProxy knows, too
            late = await found.open()
            await late.say("One, two.")
            assert await complete(late)
        assert draining.front.sessions <= 4 and other.front.sessions == 12
        assert all([await complete(one) for one in opened])
        await until(lambda: draining.front.sessions == 0)


async def test_members_come_and_go_and_no_call_is_cut() -> None:
    async with fleet(8) as found, server(8) as second, server(8) as third:
        first = found.servers[0]
        call = await found.open()
        await call.say(LONG)
        await found.ingress.change([member(first), member(second)])
        await found.ready(2)
        for _ in range(5):
            await found.open()
        assert second.front.sessions >= 2
        await found.ingress.change([member(second), member(third)])  # the first slot is free again
        await found.ingress.change([member(third)])
        await found.ready(1)
        before = third.front.sessions
        for _ in range(4):
            await found.open()
        assert third.front.sessions == before + 4
        assert await complete(call) and found.ingress.starts == 1


async def speaks(session: Session) -> bool:
    """One turn. False: the server was going, and had begun none."""
    session.messages.clear()
    session.samples = 0
    with contextlib.suppress(websockets.ConnectionClosed):
        await session.say("one two three four")
    await until(lambda: session.of("turn.done") or session.lost)
    if session.of("turn.done"):
        return await complete(session)
    assert session.socket.close_code == 1001 and not session.samples, session.messages
    return False


@pytest.mark.alone
async def test_a_rolling_upgrade_loses_no_turn() -> None:
    """Each server is replaced by a new one while a crowd speaks."""
    port = free_port()
    async with contextlib.AsyncExitStack() as stack:
        old = [await stack.enter_async_context(server_process(8)) for _ in range(2)]
        config = IngressConfig(bind=f"127.0.0.1:{port}", slots=4)
        ingress = await stack.enter_async_context(
            ingress_running(config, [one.member for one in old])
        )
        await until_ready(ingress, 2)
        stop, turns = asyncio.Event(), 0

        async def conversation() -> None:
            nonlocal turns
            while not stop.is_set():
                session = await open_session(port)
                for _ in range(2):
                    if not await speaks(session):
                        break
                    turns += 1
                await session.close()

        crowd = [asyncio.create_task(conversation()) for _ in range(6)]
        new: list[Member] = []
        for number, one in enumerate(old):
            new.append((await stack.enter_async_context(server_process(8))).member)
            await ingress.change([*(left.member for left in old[number:]), *new])
            await until_ready(ingress, 3)
            one.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(one.ended(), 20) == 0
            await ingress.change([*(left.member for left in old[number + 1 :]), *new])
        stop.set()
        await asyncio.gather(*crowd)
        assert turns >= 12


async def test_after_a_server_was_killed_the_next_turn_is_complete_at_the_first_try() -> None:
    port = free_port()
    async with server_process(8) as victim, server(8) as other:
        config = IngressConfig(bind=f"127.0.0.1:{port}", slots=4)
        async with ingress_running(config, [victim.member, member(other)]) as ingress:
            await until_ready(ingress, 2)
            opened = [await open_session(port) for _ in range(6)]
            for one in opened:
                await one.say(LONG)
            await until(lambda: all(one.samples for one in opened))
            victim.process.kill()
            for _ in range(10):
                late = await open_session(port)
                await late.say("One, two.")
                assert await complete(late)
                await late.close()
            await until(lambda: sum(one.lost for one in opened) == 3)
            assert all([await complete(one) for one in opened if not one.lost])
            for one in opened:
                await one.close()


async def test_turns_of_a_server_that_was_killed_go_on_at_another_with_the_next_sample() -> None:
    port = free_port()
    async with server_process(8) as victim, server_process(8) as other:
        config = IngressConfig(bind=f"127.0.0.1:{port}", slots=4)
        async with ingress_running(config, [victim.member, other.member]) as ingress:
            await until_ready(ingress, 2)
            async with listening(port, 6, TEN_SECONDS) as listeners:
                victim.process.kill()
            assert sorted(one.resumes for one in listeners) == [0, 0, 0, 1, 1, 1]


async def test_a_haproxy_that_was_killed_is_back_within_three_seconds() -> None:
    async with fleet(8, 8) as found:
        before = await found.open()
        assert found.ingress.pid is not None
        os.kill(found.ingress.pid, signal.SIGKILL)
        killed = time.monotonic()
        await until(lambda: before.lost)
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(OSError, websockets.InvalidHandshake):
                    late = await found.open()
                    break
                await asyncio.sleep(0.02)
        assert time.monotonic() - killed < 3
        await late.say("One, two.")
        assert await complete(late) and found.ingress.starts == 2
        await found.ingress.change([member(found.servers[1])])  # the new one takes orders, too
        await found.ready(1)


@pytest.mark.alone
async def test_a_client_that_stops_reading_is_gone_within_ten_seconds() -> None:
    async with fleet(4) as found:
        await leaves_a_client_that_stops_reading(found.servers[0], found.port)


async def test_an_ingress_that_is_killed_leaves_calls_alone_and_frees_its_port(
    tmp_path: Path,
) -> None:
    async with server(4) as one:
        port, file = free_port(), tmp_path / "members"
        file.write_text(f"127.0.0.1:{one.port}/{one.agent_port}  # the only one\n")
        words = "-m", "realtime_tts", "ingress", "--members-file", str(file)
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, "--bind", f"127.0.0.1:{port}", stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        assert str(port) in (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
        (haproxy,) = psutil.Process(process.pid).children()
        call = await open_session(port)
        await call.say("one " * 10)
        process.kill()
        await process.communicate()
        await until(lambda: refuses(port))
        assert await complete(call)
        await call.close()
        await asyncio.to_thread(haproxy.wait, 5)


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return True
    return False


async def test_the_command_follows_its_file_of_members_and_ends_softly(tmp_path: Path) -> None:
    async with server(4) as first, server(4) as second:
        port, file = free_port(), tmp_path / "members"
        file.write_text(f"127.0.0.1:{first.port}/{first.agent_port}\n")
        words = "-m", "realtime_tts", "ingress", "--members-file", str(file)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *words, "--bind", f"127.0.0.1:{port}"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            await asyncio.wait_for(process.stdout.readline(), 20)
            call = await open_session(port)
            await call.say("one " * 10)
            file.write_text("nonsense\n")  # is told in the log, and changes nothing
            assert process.stderr is not None
            async with asyncio.timeout(20):
                while b"fleet.not_followed" not in await process.stderr.readline():
                    pass
            file.write_text(f"127.0.0.1:{second.port}/{second.agent_port}\n")
            async with asyncio.timeout(20):
                while b"fleet.followed_again" not in await process.stderr.readline():
                    pass

            async def at_the_second() -> bool:
                session = await open_session(port)
                found = second.front.sessions > 0
                await session.close()
                return found

            await until(at_the_second)
            await until(lambda: first.front.sessions == 1)
            process.send_signal(signal.SIGTERM)
            assert await complete(call)
            await call.close()
            assert await asyncio.wait_for(process.wait(), 10) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()  # a kill would leave its HAProxy behind
            await asyncio.wait_for(process.communicate(), 20)


async def test_a_second_signal_ends_the_command_and_leaves_calls_to_haproxy() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's is too long for HAProxy's socket
        async with server(4) as one:
            port, where = free_port(), f"127.0.0.1:{one.port}/{one.agent_port}"
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "realtime_tts", "ingress", "--member", where),
                *("--bind", f"127.0.0.1:{port}"),
                env=os.environ | {"TMPDIR": folder},
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdout is not None
            await asyncio.wait_for(process.stdout.readline(), 20)
            call = await open_session(port)
            await call.say("one " * 10)
            process.send_signal(signal.SIGTERM)
            await until(lambda: refuses(port))
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 10) == 0
            assert not os.listdir(folder)
            assert await complete(call)
            await call.close()


async def test_a_port_that_is_taken_is_told_at_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ingress = Ingress(IngressConfig(bind=f"127.0.0.1:{port}", slots=2))
        with pytest.raises(ConfigError, match=str(port)):
            await ingress.start()
        await ingress.stop()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10.0.0.5:8000/9000", Member("10.0.0.5", 8000, 9000)),
        ("tts-1.example:8000", Member("tts-1.example", 8000, 8001)),
        ("[::1]:8000/9000", Member("::1", 8000, 9000)),
    ],
)
def test_a_member_is_named_by_its_addresses(text: str, found: Member) -> None:
    assert parse_member(text) == found


@pytest.mark.parametrize("text", ["", "host", "host:", "host:0", "host:70000", "a b:80", "h:80/x"])
def test_what_is_no_member_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT/AGENT_PORT"):
        parse_member(text)


def test_a_file_of_members_has_comments_and_empty_lines(tmp_path: Path) -> None:
    file = tmp_path / "members"
    file.write_text("# ours\n\na:1/2 # the first\nb:3\n")
    assert read_members(file) == (Member("a", 1, 2), Member("b", 3, 4))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_members(tmp_path / "none")
