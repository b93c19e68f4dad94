"""Fronts and engines that are killed at random moments, while sessions come, speak and go."""

from __future__ import annotations

import asyncio
import contextlib
import random
from functools import partial

import websockets

from tests.engine.faulty import until
from tests.fronts.running import Server, Session, serving

KILLS = 6
TALKERS = 12


def settled(session: Session, turns: int) -> bool:
    return session.lost or len(session.of("turn.done")) == turns


async def talk(server: Server, rng: random.Random, over: asyncio.Event) -> tuple[int, int]:
    """Sessions one after the other; how many turns were spoken, and how many cut off."""
    spoken = cut = 0
    while not over.is_set():
        try:
            socket = await websockets.connect(server.socket_url, proxy=None)
        except websockets.InvalidStatus as refused:
            assert refused.response.status_code == 503, "while engines restart"
            await asyncio.sleep(0.05)
            continue
        except (OSError, websockets.InvalidMessage, EOFError):
            await asyncio.sleep(0.05)  # handed to a front at the moment of its death
            continue
        session = Session(socket)
        for number in range(rng.randint(1, 3)):
            if over.is_set():
                break
            with contextlib.suppress(websockets.ConnectionClosed):
                await session.say("one " * rng.randint(1, 20))
            await until(partial(settled, session, number + 1))
            if session.lost:
                cut += 1
                break
            done = session.of("turn.done")[-1]
            assert done["reason"] in ("complete", "error"), done
            spoken += done["reason"] == "complete"
            cut += done["reason"] == "error"
        assert {one["code"] for one in session.of("error")} <= {
            "engine_restarted",
            "engine_unavailable",
            "not_ready",
        }
        await session.close()
    return spoken, cut


async def test_whatever_is_killed_the_rest_speaks_and_nothing_is_left_over() -> None:
    rng, over = random.Random(17), asyncio.Event()
    async with serving(fronts=3, engines=2) as server:
        talkers = [
            asyncio.create_task(talk(server, random.Random(number), over))
            for number in range(TALKERS)
        ]
        kills = 0
        while kills < KILLS:
            await asyncio.sleep(rng.uniform(0.3, 1.0))
            victims = server.fronts if rng.random() < 0.6 else server.engines
            if victims:
                rng.choice(victims).kill()
                kills += 1
        await server.until("tts_fronts", 3)
        await server.until("tts_capacity_turns", 128)
        await asyncio.sleep(1.0)
        over.set()
        turns = await asyncio.gather(*talkers)
        assert all(spoken for spoken, _ in turns), "everybody was heard"
        assert sum(cut for _, cut in turns) < sum(spoken for spoken, _ in turns)
        await server.until("tts_active_turns", 0)
        await server.until("tts_sessions", 0)
        restarts = await server.value("tts_front_restarts_total")
        assert restarts + await server.value("tts_engine_restarts_total") == KILLS
        assert (await server.get("/livez")).status_code == 200
