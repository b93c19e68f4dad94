"""Floods: more of something than anybody needs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter

import websockets

from tests.attacks.stage import Attack, Stage
from tests.server.peers import PING, PONG, RawPeer, frame_bytes

SECONDS = 2.0
TINY = frame_bytes(PONG)
SLICE = TINY * 170  # 1 KiB
LEXICON = {f"word{at}": "said so " * 12 for at in range(500)}


async def pour(peer: RawPeer, data: bytes, seconds: float = SECONDS) -> int:
    """As fast as the server takes it; gives the bytes that it took."""
    until, sent = time.monotonic() + seconds, 0
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                sent += peer.sock.send(data)
            await asyncio.sleep(0)
    return sent


async def pour_all(peers: list[RawPeer], data: bytes) -> int:
    """From all of them at once."""
    until, sent = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        for peer in peers:
            with contextlib.suppress(OSError):
                sent += peer.sock.send(data)
        await asyncio.sleep(0.005)
    return sent


async def tiny_frames(stage: Stage) -> str:
    async with stage.peers(1) as (peer,):
        sent = await pour(peer, TINY * 10_000)
        assert await peer.ended(3.0), "the flooder is still there"
    return f"dropped; {sent // len(TINY):,} frames sent"


async def tiny_frames_of_many(stage: Stage) -> str:
    async with stage.peers(100) as peers:
        sent = await pour_all(peers, SLICE)
        ended = await asyncio.gather(*(peer.ended(3.0) for peer in peers))
        assert all(ended), ended.count(False)
    return f"dropped; {sent // len(TINY):,} frames sent"


async def pings(stage: Stage) -> str:
    async with stage.peers(1) as (peer,):
        await pour(peer, frame_bytes(PING, b"x" * 100) * 100)
        assert await peer.ended(3.0), "the flooder is still there"
    return "dropped"


async def messages(stage: Stage) -> str:
    async with stage.session() as socket:
        with contextlib.suppress(websockets.ConnectionClosed):
            for _ in range(3_000):
                await socket.send('{"type":"text","text":"x"}')
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                await socket.recv()
        assert socket.close_code == 1008, socket.close_code
    return "closed with 1008"


async def garbage(stage: Stage) -> str:
    counts = []
    for _ in range(40):
        answers = 0
        async with stage.session() as socket:
            with contextlib.suppress(websockets.ConnectionClosed):
                for _ in range(20):
                    await socket.send("[" * 60_000)
            with contextlib.suppress(websockets.ConnectionClosed):
                while True:
                    answers += '"bad_json"' in str(await socket.recv())
            assert socket.close_code == 1008, socket.close_code
        counts.append(answers)
    assert counts == [10] + [1] * 39, counts
    return "closed after 10, then after 1, 39 times"


async def connections(stage: Stage) -> str:
    statuses: Counter[int] = Counter()
    for _ in range(1_400):
        peer = await stage.peer()
        await peer.send(b"GET /v1/voices HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        statuses[int((await peer.head()).split()[1])] += 1
        peer.sock.close()
    other = await stage.peer(source="127.0.0.3")
    assert b" 101 " in await other.upgrade("/v1/tts"), "another address is let in"
    other.sock.close()
    assert set(statuses) == {200, 429}, statuses
    return ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))


async def settings(stage: Stage) -> str:
    start = json.dumps({"type": "session.start", "lexicon": LEXICON})
    answers: Counter[str] = Counter()
    async with stage.session() as socket:
        for _ in range(300):
            await socket.send(start)
            answers[json.loads(await socket.recv())["type"]] += 1
    return ", ".join(f"{count} {name}" for name, count in answers.items())


async def long_turns(stage: Stage) -> str:
    text = "1,234.56 and so on, up to 98%. " * 500
    done = 0
    async with stage.session() as socket:
        for _ in range(10):
            await socket.send(json.dumps({"type": "text", "text": text}))
            await socket.send('{"type":"interrupt"}')
            while "turn.done" not in str(await socket.recv()):
                pass
            done += 1
    return f"{done} turns of {len(text):,} characters interrupted"


async def refused_turns(stage: Stage) -> str:
    """Twelve turns speak or wait, and forty sessions try again and again."""
    answers: Counter[str] = Counter()
    turn = json.dumps({"type": "text", "text": "Is there room? " * 8, "end": True})
    until = time.monotonic() + 4.0

    async def insist() -> None:
        async with stage.session() as socket:
            while time.monotonic() < until:
                await socket.send(turn)
                while True:
                    raw = await socket.recv()
                    found = {} if isinstance(raw, bytes) else json.loads(raw)
                    if found.get("type") == "error":
                        assert found["retry_after_ms"] > 0, found
                        answers[found["code"]] += 1
                    elif found.get("type") == "turn.done":
                        answers[found["reason"]] += 1
                        break
                await asyncio.sleep(0.02)

    await asyncio.gather(*(insist() for _ in range(40)))
    assert set(answers) <= {"overloaded", "error", "complete"}, answers
    assert answers["overloaded"] > 100, answers
    return f"{answers['overloaded']:,} refused, {answers['complete']} spoken"


async def churn(stage: Stage) -> str:
    """Sessions that come, speak a word of MP3 and vanish."""
    before = stage.process.num_threads()
    most = before
    for _ in range(15):

        async def visit() -> None:
            async with stage.session("?encoding=mp3") as socket:
                await socket.send('{"type":"text","text":"Hi.","end":true}')
                while isinstance(await socket.recv(), str):
                    pass
                socket.transport.abort()

        await asyncio.gather(*(visit() for _ in range(4)))
        most = max(most, stage.process.num_threads())
    assert most <= before + 4, (before, most)
    return f"60 sessions; {before} threads before, {most} at most"


FLOODS = [
    Attack("tiny frames, as fast as they go", "the socket is dropped", tiny_frames),
    Attack("the same from 100 sockets", "they are dropped", tiny_frames_of_many),
    Attack("pings", "the socket is dropped", pings),
    Attack("3,000 messages at once", "closed with 1008 (rate_limited)", messages),
    Attack("garbage, with 40 reconnects", "ten answers, then one each, and 1008", garbage),
    Attack("300 session.start with 500 words", "each is answered", settings),
    Attack("long texts with interrupts", "each turn is done", long_turns),
    Attack(
        "turns beyond capacity",
        "refused with a time to come back; those on the air have no gap",
        refused_turns,
        ends=frozenset({"error"}),  # refused, as any other
    ),
    Attack("sessions of MP3 that come and vanish", "no thread for each", churn),
    Attack("1,400 connections", "429 beyond the burst; other addresses are let in", connections),
]
