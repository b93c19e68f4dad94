"""How full a server says it is, and whom it refuses when it is full."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import websockets

from realtime_tts.access.account import FREE
from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.errors import ConfigError
from realtime_tts.server.agent import agent_line
from realtime_tts.server.load import Load
from tests.server.speaking import speaking
from tests.server.talking import denied
from tests.waiting import SECONDS, until
from tts_scheduler import SchedulerConfig

SLOTS = 4
ENGINE = FakeEngineConfig(slots=SLOTS, frames_per_token=1, step_seconds=0.01)
SCHEDULER = SchedulerConfig(slots=SLOTS, max_queue=1, queue_timeout=2.0, utilisation=1_000)
LONG = "one " * 60


def load(**fields: Any) -> Load:
    usual: dict[str, Any] = {
        "capacity": 8,
        "active": 0,
        "queued": 0,
        "sessions": 0,
        "max_sessions": 512,
        "ready": True,
        "draining": False,
        "model": "tones",
    }
    return Load(**usual | fields)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "ready up 8%"),
        ({"active": 3, "queued": 1}, "ready up 4%"),
        ({"active": 8}, "ready up 0%"),
        ({"active": 8, "queued": 4}, "ready up 0%"),
        ({"sessions": 510}, "ready up 2%"),
        ({"sessions": 512}, "ready up 0%"),
        ({"capacity": 30_000, "max_sessions": 60_000}, "ready up 25600%"),
        ({"ready": False, "capacity": 0}, "down"),
        ({"draining": True}, "drain"),
        ({"draining": True, "ready": False}, "drain"),
    ],
)
def test_the_agent_says_what_is_free(fields: dict[str, Any], line: str) -> None:
    assert agent_line(load(**fields)) == line


def test_the_share_that_autoscalers_go_by_counts_turns_that_wait() -> None:
    assert load(active=8, queued=4).share == 1.5
    assert load(active=2).share == 0.25
    assert load(capacity=0).share == 0.0


@pytest.mark.parametrize("wrong", [{"turn_reserve": 1.0}, {"turn_reserve": -0.1}])
def test_a_reserve_is_a_share(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="turn_reserve"):
        ServerConfig(**wrong)


async def told(server: Any, **headers: str) -> Any:
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
        return await http.get(f"{server.running.url}/v1/load", headers=headers)


async def agent(server: Any) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.running.agent_port)
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


@asynccontextmanager
async def busy(turns: int, **config: Any) -> AsyncIterator[Any]:
    """A server of four turns; so many of them speak, of as many sessions."""
    chosen = ServerConfig(port=0, agent_port=0, **config)
    async with speaking(chosen, engine=ENGINE, scheduler=SCHEDULER) as started:
        server: Any = started
        server.talkers = []
        for _ in range(turns):
            socket = await websockets.connect(
                server.running.websocket_url, proxy=None, max_queue=None
            )
            server.talkers.append(socket)
            await socket.send(json.dumps({"type": "text", "text": LONG, "end": True}))
        await until(lambda: server.running.front.load().active == turns)
        yield server
        await asyncio.gather(*(socket.close() for socket in server.talkers))


async def test_load_metrics_and_agent_say_the_same() -> None:
    async with busy(3) as server:
        async with server.talk():
            answer = (await told(server)).json()
            assert answer["capacity"] == server.value("tts_capacity_turns") == SLOTS
            assert answer["active"] == server.value("tts_active_turns") == 3
            assert answer["queued"] == server.value("tts_queued_turns") == 0
            assert answer["sessions"] == server.value("tts_sessions") == 4
            assert (answer["ready"], answer["draining"]) == (True, False)
            assert answer["model"] == server.running.front.info.model and answer["version"]
            assert await agent(server) == "ready up 1%\n"


async def test_the_agent_follows_a_server_from_its_start_to_its_end() -> None:
    loaded = threading.Event()

    def slowly(progress: Any) -> FakeEngine:
        loaded.wait(SECONDS)
        return FakeEngine(ENGINE)

    config = ServerConfig(port=0, agent_port=0)
    async with speaking(config, wait_ready=False, load=slowly, scheduler=SCHEDULER) as server:
        assert await agent(server) == "down\n"
        assert (await told(server)).json()["model"] is None
        loaded.set()
        await until(lambda: server.running.front.not_ready() is None)
        assert await agent(server) == "ready up 4%\n"
        async with server.talk() as talker:
            await talker.send("text", text="one " * 10, end=True)
            await until(lambda: server.running.front.load().active == 1)
            server.running.front.drain()
            assert await agent(server) == "drain\n"
            answer = (await told(server)).json()
            assert (answer["draining"], answer["active"]) == (True, 1)
            await talker.until("turn.done")


async def test_the_load_is_for_those_with_a_key() -> None:
    async with speaking(ServerConfig(port=0, api_keys=("a-long-key",))) as server:
        assert (await told(server)).status_code == 401
        assert (await told(server, authorization="Bearer a-long-key")).status_code == 200


async def test_without_a_free_turn_a_session_is_refused_before_the_upgrade() -> None:
    async with busy(SLOTS, turn_reserve=0.0) as server:
        answer = await denied(server.talk())
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        error = json.loads(answer.body)
        assert (error["code"], error["retryable"]) == ("too_many_sessions", True)
        assert "live turns: 4 of 4; try again" in error["message"]
        speak = {"input": "One.", "voice": "alto", "model": "tts-1"}
        async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
            spoken = await http.post(f"{server.running.url}/v1/audio/speech", json=speak)
        assert (spoken.status_code, spoken.headers["retry-after"]) == (503, "1")
        await server.talkers.pop().close()
        await until(lambda: server.running.front.load().free_turns)
        async with server.talk():
            pass


async def test_a_full_server_of_one_session_says_so() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=1))
    async with speaking(config, engine=ENGINE, scheduler=SCHEDULER) as server, server.talk():
        refused = json.loads((await denied(server.talk())).body)["message"]
        assert refused == "all sessions are taken (1); try again later"


async def test_what_is_kept_is_for_turns_of_open_sessions() -> None:
    async with busy(1, turn_reserve=0.5) as server:
        async with server.talk() as late:  # three turns are free, and two are kept
            await late.send("text", text=LONG, end=True)
            await until(lambda: server.running.front.load().active == 2)
            refused = json.loads((await denied(server.talk())).body)["message"]
            assert "live turns: 2 of 4; kept for open sessions: 2; try again" in refused
            await late.send("text", text="Once more.", end=True)
            await late.until("turn.started")


async def test_a_server_of_one_turn_lets_somebody_in_whatever_it_keeps() -> None:
    one = FakeEngineConfig(slots=1, frames_per_token=1)
    config = ServerConfig(port=0, turn_reserve=0.9)
    async with speaking(config, engine=one, scheduler=SchedulerConfig(slots=1)) as server:
        async with server.talk() as talker:
            await talker.send("text", text="One.", end=True)
            await talker.until("turn.done")


async def test_by_default_sessions_are_refused_while_turns_are() -> None:
    async with busy(SLOTS) as server:
        async with server.talk() as late, server.talk() as later:
            await late.send("text", text="It waits.", end=True)
            await until(lambda: server.running.front.load().queued == 1)
            await later.send("text", text="One too many.", end=True)
            error = (await later.until("error"))[-1]
            assert (error["code"], error["fatal"]) == ("overloaded", False)
            answer = await denied(server.talk())
            assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
            await server.talkers.pop().close()  # a turn ends
            await until(lambda: server.running.front.engine.full() is None)
            async with server.talk():
                pass


async def test_contexts_of_open_sockets_are_no_new_sessions() -> None:
    config = ServerConfig(port=0, turn_reserve=0.75, limits=LimitsConfig(max_sessions=64))
    async with speaking(config, engine=ENGINE, scheduler=SCHEDULER) as server:
        front = server.running.front
        assert front.load().free_turns == SLOTS
        async with server.talk() as talker:
            await talker.send("text", text=LONG, end=True)
            await until(lambda: front.load().active == 1)
            assert (await denied(server.talk())).status_code == 503
            front.admit(FREE, held=1)
            front.admit(FREE, more=True)
