"""Fronts and engines that are killed at random moments, while sessions come, speak and go."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass
from functools import partial

import websockets

from tests.fronts.running import Server, Session, serving
from tests.waiting import until

KILLS = 6
TALKERS = 12


def settled(session: Session, turns: int) -> bool:
    return session.lost or len(session.of("turn.done")) == turns


@dataclass
class Talker:
    """Sessions one after the other; how many turns were spoken, and how many cut off."""

    server: Server
    rng: random.Random
    spoken: int = 0
    cut: int = 0

    async def talk(self, over: asyncio.Event) -> None:
        while not over.is_set():
            try:
                socket = await websockets.connect(self.server.socket_url, proxy=None)
            except websockets.InvalidStatus as refused:
                assert refused.response.status_code == 503, "while engines restart"
                await asyncio.sleep(0.05)
                continue
            except (OSError, websockets.InvalidMessage, EOFError):
                await asyncio.sleep(0.05)  # handed to a front at the moment of its death
                continue
            await self._turns(Session(socket), over)

    async def _turns(self, session: Session, over: asyncio.Event) -> None:
        for number in range(self.rng.randint(1, 3)):
            if over.is_set():
                break
            with contextlib.suppress(websockets.ConnectionClosed):
                await session.say("one " * self.rng.randint(1, 20))
            await until(partial(settled, session, number + 1))
            if session.lost:
                self.cut += 1
                break
            done = session.of("turn.done")[-1]
            assert done["reason"] in ("complete", "error"), done
            self.spoken += done["reason"] == "complete"
            self.cut += done["reason"] == "error"
        assert {one["code"] for one in session.of("error")} <= {
            "engine_restarted",
            "engine_unavailable",
            "not_ready",
        }
        await session.close()


async def test_whatever_is_killed_the_rest_speaks_and_nothing_is_left_over() -> None:
    rng, over = random.Random(17), asyncio.Event()
    async with serving(fronts=3, engines=2) as server:
        talkers = [Talker(server, random.Random(number)) for number in range(TALKERS)]
        talking = asyncio.gather(*(one.talk(over) for one in talkers))
        kills = 0
        while kills < KILLS:
            await asyncio.sleep(rng.uniform(0.3, 1.0))
            victims = server.fronts if rng.random() < 0.6 else server.engines
            if victims:
                rng.choice(victims).kill()
                kills += 1
        await server.until("tts_fronts", 3)
        await server.until("tts_capacity_turns", 128)
        before = [one.spoken for one in talkers]
        await until(
            lambda: all(one.spoken > spoken for one, spoken in zip(talkers, before, strict=True))
        )  # everybody is heard
        over.set()
        await talking
        assert sum(one.cut for one in talkers) < sum(one.spoken for one in talkers)
        await server.until("tts_active_turns", 0)
        await server.until("tts_sessions", 0)
        restarts = await server.value("tts_front_restarts_total")
        assert restarts + await server.value("tts_engine_restarts_total") == KILLS
        assert (await server.get("/livez")).status_code == 200
