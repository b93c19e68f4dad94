"""A fleet on a real Ray cluster of two nodes, behind a real HAProxy, while people talk."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import websockets

from realtime_tts.background import cancel
from tests.fleet.running import LONG, free_port, listening, open_session
from tests.fronts.running import Session
from tests.waiting import until

if TYPE_CHECKING:
    from tools.ray_fleet import LocalFleet

TURN = "one " * 20  # six seconds of tones
EVENTS = 4
PAUSE = float(os.environ.get("FLEET_CALL_SECONDS", "0")) / EVENTS
"""A call is as long as its scale events take; 1200 makes one of twenty minutes and more."""

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is missing: make test-fleet has it"),
    pytest.mark.timeout(400 + EVENTS * PAUSE),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of its dependencies
]
QUICK = {
    "serve": ["--engine", "fake", "--slots", "4", "--turn-reserve", "0"],
    "cpus": 0.5,  # two on a node
    "replicas_per_node": 2,
    "max_replicas": 3,
    "drain_seconds": 60,
    "upscale_delay_s": 1,
    "downscale_delay_s": 2,
    "interval_s": 0.5,
    "health_period_s": 1,
}


@pytest.fixture(scope="module")
def fleet() -> Iterator[LocalFleet]:
    from tools.ray_fleet import local_fleet

    before = set(psutil.Process().children())
    with local_fleet(free_port(), nodes=2) as found:
        found.deploy(**QUICK)
        found.until_ready()
        yield found
    left = set(psutil.Process().children(recursive=True)) - before
    assert not [one for one in left if one.is_running()], "something was left behind"


class Caller:
    """A call: one turn after the other; when its server leaves, the call goes on at another one."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.complete = self.lost = self.connections = 0
        self.why: list[Any] = []

    async def run(self) -> None:
        session: Session | None = None
        try:
            while True:
                if session is None or session.lost:
                    session = await open_session(self._port)
                    self.connections += 1
                await self._turn(session)
        finally:
            if session is not None:
                await session.close()

    async def _turn(self, session: Session) -> None:
        before = len(session.of("turn.started"))
        with contextlib.suppress(websockets.ConnectionClosed):
            await session.say(TURN)
        done = len(session.of("turn.done")) + 1
        await until(lambda: len(session.of("turn.done")) >= done or session.lost, 60)
        if (
            len(session.of("turn.done")) >= done
            and session.of("turn.done")[-1]["reason"] == "complete"
        ):
            self.complete += 1
        elif len(session.of("turn.started")) > before:  # else the server has begun no turn
            self.lost += 1
            self.why.append((session.socket.close_code, session.messages[-3:]))


@contextlib.asynccontextmanager
async def calling(fleet: LocalFleet, count: int) -> AsyncIterator[list[Caller]]:
    """So many calls for the block; when one fails, so does the test."""
    callers = [Caller(fleet.port) for _ in range(count)]
    tasks = [asyncio.create_task(one.run()) for one in callers]
    try:
        yield callers
        for task in tasks:
            assert not task.done() or task.exception() is None, task.exception()
    finally:
        await cancel(*tasks)


async def eventually(what: Callable[[], Any], seconds: float = 90) -> None:
    await until(partial(asyncio.to_thread, what), seconds)


async def talking(fleet: LocalFleet, count: int) -> list[Session]:
    opened = []
    for _ in range(count):
        session = await open_session(fleet.port)
        await session.say(LONG)
        await until(partial(_said_something, session), 20)
        assert session.samples, (session.socket.close_code, session.messages)
        opened.append(session)
    return opened


def _said_something(session: Session) -> bool:
    return bool(session.samples or session.lost or session.of("error"))


async def all_complete(opened: list[Session]) -> bool:
    """Their turns; the sessions are closed."""
    done = [await one.until("turn.done") for one in opened]
    await asyncio.gather(*(one.close() for one in opened))
    return all(one["reason"] == "complete" for one in done)


async def speaking_replica(fleet: LocalFleet) -> dict[str, Any]:
    """Where the server of a replica is that speaks now."""
    async with asyncio.timeout(20):
        while True:  # Ray asks one or the other
            found = await asyncio.to_thread(lambda: fleet.handle().where.remote().result())
            if await asyncio.to_thread(_active, found["port"]):
                return dict(found)


def _active(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/load", timeout=5) as answer:
        return int(json.load(answer)["active"])


async def settled(fleet: LocalFleet) -> None:
    """Two servers, of which HAProxy has heard, too: it asks twice a second."""
    await eventually(lambda: len(fleet.members) == 2)
    await asyncio.sleep(3)


def replaced(fleet: LocalFleet, port: int) -> bool:
    """The server at this port is struck off, and there are two without it."""
    members = fleet.members
    return len(members) >= 2 and not any(f":{port}/" in one for one in members)


async def test_a_call_survives_replicas_that_come_with_the_load_and_leave_without_it(
    fleet: LocalFleet,
) -> None:
    await settled(fleet)
    async with calling(fleet, 2) as calls:
        for _ in range(EVENTS // 2):
            async with calling(fleet, 4) as more:  # six of eight turns: three quarters
                await eventually(lambda: len(fleet.members) == 3)
            await eventually(lambda: len(fleet.members) == 2)  # with turns in flight
            assert [one.lost for one in more] == [0] * 4, [one.why for one in more]
            await asyncio.sleep(2 * PAUSE)
        before = [one.complete for one in calls]
        await eventually(lambda: all(o.complete > b for o, b in zip(calls, before, strict=True)))
    assert [one.lost for one in calls] == [0, 0], [one.why for one in calls]


async def test_all_replicas_are_replaced_while_people_talk(fleet: LocalFleet) -> None:
    await settled(fleet)
    before = set(fleet.members)
    async with calling(fleet, 3) as calls:
        await eventually(lambda: all(one.complete for one in calls))
        await asyncio.to_thread(fleet.deploy, **QUICK | {"turn_reserve": 0.05})
        await eventually(lambda: len(fleet.members) >= 2 and not before & set(fleet.members))
        spoken = [one.complete for one in calls]
        await eventually(lambda: all(o.complete > b for o, b in zip(calls, spoken, strict=True)))
    assert [one.lost for one in calls] == [0, 0, 0], [one.why for one in calls]
    assert all(one.connections >= 2 for one in calls), "whose server was replaced, came back"


async def test_turns_outlive_the_actor_that_is_killed(fleet: LocalFleet) -> None:
    await settled(fleet)
    opened = await talking(fleet, 4)
    found = await speaking_replica(fleet)
    keeper = psutil.Process(found["pid"])
    os.kill(keeper.ppid(), signal.SIGKILL)
    late = await open_session(fleet.port)
    await late.say(TURN)
    assert await all_complete([late, *opened])
    await eventually(lambda: not keeper.is_running() and replaced(fleet, found["port"]))


async def test_after_a_server_is_killed_the_next_turn_is_spoken_at_the_first_try(
    fleet: LocalFleet,
) -> None:
    await settled(fleet)
    opened = await talking(fleet, 4)
    found = await speaking_replica(fleet)
    (server,) = psutil.Process(found["pid"]).children()
    server.kill()
    for _ in range(4):
        late = await open_session(fleet.port)
        await late.say(TURN)
        assert await all_complete([late])
    assert any(one.lost for one in opened)
    assert await all_complete([one for one in opened if not one.lost]), "the other server speaks on"
    await eventually(lambda: replaced(fleet, found["port"]))


async def test_turns_of_a_replica_that_was_killed_go_on_at_another_with_the_next_sample(
    fleet: LocalFleet,
) -> None:
    await settled(fleet)
    async with listening(fleet.port, 4, TURN) as listeners:
        found = await speaking_replica(fleet)
        os.killpg(found["pid"], signal.SIGKILL)  # the server, and what keeps it
    assert 0 < sum(one.resumes for one in listeners) < 4
    await eventually(lambda: replaced(fleet, found["port"]))
