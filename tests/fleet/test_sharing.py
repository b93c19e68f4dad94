"""How an ingress shares sessions out among the servers of a fleet."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import time
from collections import Counter
from typing import Any

import httpx2
import pytest
import websockets

from realtime_tts.fleet.haproxy import IngressConfig
from realtime_tts.fleet.members import Member
from tests.fleet.running import (
    LONG,
    Fleet,
    fleet,
    free_port,
    ingress_running,
    open_session,
    until_ready,
    weights,
)
from tests.fronts.running import Session
from tests.server.talking import BROWSER
from tests.waiting import until

CAPACITIES = 8, 4, 4


async def test_sessions_are_spread_by_capacity() -> None:
    async with fleet(*CAPACITIES) as found:
        for _ in range(60):
            await found.open()
        for sessions, capacity in zip(found.sessions(), CAPACITIES, strict=True):
            fair = 60 * capacity / sum(CAPACITIES)
            assert abs(sessions - fair) <= 0.1 * fair, found.sessions()


async def test_weights_follow_free_turns() -> None:
    async with fleet(*CAPACITIES) as found:
        assert await weights(found.ingress) == {"s1": 8, "s2": 4, "s3": 4}
        for _ in range(8):
            await (await found.open()).say(LONG)
        await until(lambda: sum(one.front.load().active for one in found.servers) == 8)
        free = [one.front.load().free_turns for one in found.servers]
        assert sum(free) == 8 and max(free) < 8
        await hear(found, free)


async def hear(found: Fleet, free: list[int]) -> None:
    """Wait until HAProxy has heard from every agent that so many turns are free."""

    async def heard() -> bool:
        return list((await weights(found.ingress)).values()) == free

    await until(heard, 5)


async def come(found: Fleet) -> tuple[float, Session | websockets.Response]:
    """A client connects; how long that took, and what became of it."""
    began = time.monotonic()
    try:
        session = await open_session(found.port)
    except websockets.InvalidStatus as refused:
        return time.monotonic() - began, refused.response
    found.opened.append(session)
    return time.monotonic() - began, session


@pytest.mark.alone
async def test_refusals_are_retried_elsewhere_until_every_place_is_taken() -> None:
    configs = [{"turn_reserve": None, "limits": places(count)} for count in (15, 8, 7)]
    async with fleet(*CAPACITIES, configs=configs) as found:
        came = await asyncio.gather(*(come(found) for _ in range(30)))
        came += [await come(found) for _ in range(6)]
        assert found.sessions() == [15, 8, 7]
        refused = [(taken, one) for taken, one in came if not isinstance(one, Session)]
        assert len(refused) == 6
        for _, answer in refused:
            assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
            # Of a server, or of HAProxy, once it has heard from each that it is full.
            assert json.loads(answer.body)["code"] in ("too_many_sessions", "not_ready")
        assert statistics.median(taken for taken, _ in refused) < 0.05
        told = sum(
            one.front.metrics.registry.get_sample_value(
                "tts_refused_total", {"reason": "too_many_sessions"}
            )
            or 0
            for one in found.servers
        )
        assert told > 6, "what one server refuses is asked of another"


def places(count: int) -> Any:
    from realtime_tts.config import LimitsConfig

    return LimitsConfig(max_sessions=count)


async def test_a_request_over_http_finds_the_server_that_has_room() -> None:
    async with fleet(2, 2, 2) as found:
        talkers = [await found.open() for _ in range(6)]
        for talker in talkers[1:]:
            await talker.say(LONG)

        def live() -> int:
            return sum(one.front.load().active for one in found.servers)

        await until(lambda: live() == 5)
        await hear(found, [one.front.load().free_turns for one in found.servers])
        speak = {"input": "One.", "voice": "alto", "model": "tts-1", "response_format": "pcm"}
        async with httpx2.AsyncClient(trust_env=False, verify=False, base_url=found.url) as http:
            for _ in range(5):
                await until(lambda: live() == 5)  # the one before may have its slot still
                answer = await http.post("/v1/audio/speech", json=speak)
                assert answer.status_code == 200 and answer.content
            await talkers[0].say(LONG)
            await until(lambda: live() == 6)
            answer = await http.post("/v1/audio/speech", json=speak)
            assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1


async def test_a_client_whose_last_server_refused_is_answered() -> None:
    """HAProxy closes without a word when there is no server left to try and the one before was
    asked on a connection that had served a request already."""
    agent, found = b"ready up 50%\n", asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal agent
        with contextlib.suppress(OSError, EOFError):
            while (head := await reader.readuntil(b"\r\n\r\n")).startswith(b"GET"):
                status = b"200 OK"
                if b"/full" in head:
                    agent, status = b"ready up 0%\n", b"503 Full"
                    await found.wait()
                writer.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\n\r\n" % status)
        writer.close()

    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(agent)
        writer.close()

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as server,
        await asyncio.start_server(tell, "127.0.0.1", 0) as teller,
    ):
        ports = (one.sockets[0].getsockname()[1] for one in (server, teller))
        config = IngressConfig(bind=f"127.0.0.1:{free_port()}", slots=1)
        base = f"http://{config.bind}"
        async with (
            ingress_running(config, [Member("127.0.0.1", *ports)]) as ingress,
            httpx2.AsyncClient(trust_env=False, verify=False, base_url=base) as http,
        ):
            await until_ready(ingress, 1)
            assert (await http.get("/")).status_code == 200
            refused = asyncio.create_task(http.get("/full"))
            await until(lambda: agent == b"ready up 0%\n")

            async def full() -> bool:
                return await weights(ingress) == {"s1": 0}

            await until(full, 5)
            found.set()
            assert (await refused).status_code == 503


async def test_a_page_is_told_in_band_that_there_is_no_room() -> None:
    async with fleet(2, configs=[{"limits": places(1)}]) as found:
        await found.open()
        origin = websockets.Origin(found.url)
        url = f"ws://127.0.0.1:{found.port}/v1/tts"
        async with websockets.connect(
            url, proxy=None, origin=origin, user_agent_header=BROWSER
        ) as page:
            assert json.loads(await page.recv())["code"] == "too_many_sessions"
            with contextlib.suppress(websockets.ConnectionClosed):
                await page.recv()
            assert page.close_code == 1013


async def test_cloned_voices_go_where_they_are_loaded() -> None:
    async with fleet(16, 16, 16, speakers=("alto",)) as found:
        placed: dict[str, Counter[int]] = {}
        for number in range(60):
            voice = f"clone-{number % 10}"
            before = found.sessions()
            await found.open(f"?voice={voice}")
            after = found.sessions()
            (where,) = [at for at in range(3) if after[at] > before[at]]
            placed.setdefault(voice, Counter())[where] += 1
        at_home = sum(max(places.values()) for places in placed.values())
        assert at_home / 60 >= 0.95, placed
        assert max(found.sessions()) <= 0.5 * 60 + 1, (
            "no server has more than half more than its share"
        )


async def test_speakers_of_the_checkpoint_are_spread_like_sessions_without_a_voice() -> None:
    async with fleet(8, 8, speakers=("alto",)) as found:
        for _ in range(20):
            await found.open("?voice=alto")
        assert sorted(found.sessions()) == [10, 10]


async def test_what_the_ingress_answers_itself() -> None:
    async with (
        fleet(2) as found,
        httpx2.AsyncClient(trust_env=False, verify=False, base_url=found.url) as http,
    ):
        assert (await http.get("/readyz")).status_code == 200
        assert (await http.get("/metrics")).status_code == 404
        assert (await http.get("/v1/load")).status_code == 404
        await found.ingress.change([])
        assert (await http.get("/livez")).status_code == 200
        assert (await http.get("/readyz")).status_code == 503
        refused = await http.get("/v1/voices")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert refused.json()["code"] == "not_ready" and refused.json()["retryable"]
