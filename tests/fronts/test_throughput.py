"""The measurement says why it ended, if it did."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from tests.fronts.throughput import Child
from tests.server.speaking import speaking
from tts_scheduler import SchedulerConfig


def test_a_process_that_ends_in_place_of_an_answer_is_named_with_its_last_words() -> None:
    program = "import sys; print(1); sys.stdout.flush(); sys.stdin.readline(); sys.exit('no port')"
    child = Child("the server", "-c", program)
    assert child.answer() == 1
    child.ask("more")
    with pytest.raises(SystemExit, match="the server ended with status 1:\nno port"):
        child.answer()
    child.ask("nobody is there")
    child.kill()


def last_words(port: int) -> str:
    """What a process with three sockets that begins a turn on each says when it ends."""
    child = Child("the starter", "-m", "tests.fronts.load_clients", "start", port, 3, 1)
    waits_in_vain = threading.Timer(20.0, child.process.kill)
    waits_in_vain.start()
    try:
        with pytest.raises(SystemExit) as ended:
            child.answer()
            child.ask(str(time.monotonic()))
            child.answer()
    finally:
        waits_in_vain.cancel()
        child.kill()
    return str(ended.value)


async def test_a_turn_that_is_refused_ends_the_starter_with_the_server_s_words() -> None:
    async with speaking(scheduler=SchedulerConfig(slots=1, max_queue=0)) as server:
        said = await asyncio.to_thread(last_words, server.port)
    assert said.startswith("the starter ended with status 1:\n")
    assert json.loads(said.splitlines()[1])["code"] == "overloaded"


async def test_a_session_that_is_refused_ends_the_starter_with_the_server_s_words() -> None:
    async with speaking(ServerConfig(port=0, limits=LimitsConfig(max_sessions=2))) as server:
        said = await asyncio.to_thread(last_words, server.port)
    assert said.startswith("the starter ended with status 1:\nHTTP/1.1 503 ")
