"""The server of a replica: a real one, with tones."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest
import websockets

from realtime_tts.fleet.server_process import ServerFailed, ServerProcess, free_ports
from tests.fleet.running import LONG
from tests.fronts.running import Session
from tests.waiting import until

FAKE = ["--engine", "fake", "--slots", "4"]
PORTS = 22_000, 22_999


async def started() -> ServerProcess:
    one = await ServerProcess.start("127.0.0.1", PORTS, FAKE, ["--drain-seconds", "30"])
    await one.until_ready()
    return one


async def speaking(port: int) -> Session:
    session = Session(await websockets.connect(f"ws://127.0.0.1:{port}/v1/tts", proxy=None))
    await session.say(LONG)
    await until(lambda: session.samples)
    return session


async def test_a_turn_that_runs_is_spoken_to_its_end_when_the_replica_is_stopped() -> None:
    server = await started()
    session = await speaking(server.member.port)

    async def speaks() -> bool:
        return (await server.load()).active == 1

    await until(speaks)  # the engine says twice a second how it is
    await server.check()
    await server.drain()
    assert (await session.until("turn.done"))["reason"] == "complete"
    with pytest.raises(ServerFailed, match="has ended with status 0"):
        await server.check()


PARENT = """
import asyncio
from realtime_tts.fleet.server_process import ServerProcess

async def main():
    one = await ServerProcess.start("127.0.0.1", (22_000, 22_999), {flags!r})
    await one.until_ready()
    print("HERE", one.pid, one.member.port, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_turns_go_on_when_the_process_that_started_the_server_is_killed() -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT.format(flags=FAKE)),
        stdout=asyncio.subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert parent.stdout is not None
    words: list[bytes] = []
    while words[:1] != [b"HERE"]:  # the server prints there, too
        words = (await parent.stdout.readline()).split()
    pid, port = int(words[1]), int(words[2])
    server = psutil.Process(pid)
    session = await speaking(port)
    os.kill(parent.pid, signal.SIGKILL)
    await parent.wait()
    assert (await session.until("turn.done"))["reason"] == "complete"
    await until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)


async def test_a_server_that_cannot_start_says_so() -> None:
    one = await ServerProcess.start("127.0.0.1", PORTS, ["--model", "/nowhere"])
    with pytest.raises(ServerFailed, match="ended with status"):
        await one.until_ready()


async def test_a_server_whose_key_is_not_known_here_is_not_waited_for() -> None:
    one = await ServerProcess.start("127.0.0.1", PORTS, [*FAKE, "--api-key", "a-secret-key"])
    try:
        with pytest.raises(
            ServerFailed, match="401 to /v1/load; is its key in REALTIME_TTS_API_KEYS"
        ):
            await asyncio.wait_for(one.until_ready(), 30)
    finally:
        one.kill()
        await one.drain()


def test_ports_that_are_taken_are_left_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerFailed, match="no 1 free ports"):
            free_ports("127.0.0.1", (port, port), 1)
