"""Broken peers: frames, messages and requests of chance, peers that are slow or half there, and
uploads that are none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import time
from collections import Counter

import websockets

from tests.attacks.stage import Attack, Stage
from tests.server.peers import CLOSE, TEXT, RawPeer, frame_bytes
from tests.voices import recordings

HALF_OPEN = 400
LONG_TURN = b'{"type":"text","text":"%s","end":true}' % (b"x" * 600)
VALID = [
    '{"type":"session.start","voice":"alto","language":null,"sampling":{"temperature":0.5}}',
    '{"type":"text","text":"Hello, world. ","turn_id":"a","end":true}',
    '{"type":"played","played_samples":1000,"turn_id":"a"}',
    '{"type":"interrupt","played_ms":10}',
    '{"type":"flush"}',
]


async def ends(peer: RawPeer, seconds: float = 4.0) -> str:
    """How the server ends the connection: the code of its close, or `dropped`."""
    with contextlib.suppress(EOFError, TimeoutError, ConnectionError):
        async with asyncio.timeout(seconds):
            return str(await peer.close_code() or 1005)  # 0: its close names none
    return "dropped" if await peer.ended(seconds) else "still open"


async def frames(stage: Stage) -> str:
    """Bytes of chance behind a proper handshake; then the peer half closes."""
    found: Counter[str] = Counter()
    for seed in range(300):
        chance = random.Random(seed)
        async with stage.peers(1) as (peer,):
            head = bytes([chance.choice((0x81, 0x82, 0x01, 0x88, 0x89, chance.randrange(256)))])
            with contextlib.suppress(OSError):
                await peer.send(head + chance.randbytes(chance.randrange(1, 600)))
                peer.sock.shutdown(socket.SHUT_WR)
            found[await ends(peer)] += 1
    assert set(found) <= {"1000", "1002", "1005", "1007", "1008", "1009", "dropped"}, found
    return ", ".join(f"{how}: {count}" for how, count in sorted(found.items()))


def mutated(chance: random.Random) -> str:
    """A valid message with some characters of it replaced, doubled, or left out."""
    text = list(chance.choice(VALID))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(text))
        text[at : at + chance.randrange(3)] = chance.choice(
            [
                '"',
                "{",
                "]",
                "9" * 400,
                "\ud800",
                "\x00",
                "null",
                "-1e999",
                "\u202e",
                text[at] * 3,
                "",
            ]
        )
    return "".join(text)


async def fuzzed_messages(stage: Stage) -> str:
    found: Counter[str] = Counter()
    for seed in range(1, 61):
        chance = random.Random(seed)
        stage.source = f"127.0.2.{seed}"  # bad messages of one address count together
        async with stage.session() as one:
            with contextlib.suppress(websockets.ConnectionClosed):
                for _ in range(30):
                    await one.send(mutated(chance).encode(errors="replace").decode())
            with contextlib.suppress(websockets.ConnectionClosed, TimeoutError):
                async with asyncio.timeout(0.3):
                    while True:
                        raw = await one.recv()
                        if isinstance(raw, str) and '"code"' in raw:
                            found[json.loads(raw)["code"]] += 1
    assert "internal" not in found, found
    return f"{sum(found.values())} errors of {len(found)} kinds"


async def fuzzed_requests(stage: Stage) -> str:
    found: Counter[str] = Counter()
    for seed in range(200):
        chance = random.Random(seed)
        request = bytearray(
            b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b'Content-Length: 40\r\n\r\n{"input":"Hello","voice":"alto","a":111}'
        )
        for _ in range(chance.randrange(1, 12)):
            request[chance.randrange(len(request))] = chance.randrange(256)
        peer = await stage.peer()
        with contextlib.suppress(OSError):
            await peer.send(bytes(request))
            peer.sock.shutdown(socket.SHUT_WR)
        head = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(6.0):
                head = await peer.head()
        found[head.split()[1].decode() if head else "dropped"] += 1
        peer.sock.close()
    assert not any(status.startswith("5") for status in found), found
    return ", ".join(f"{how}: {count}" for how, count in sorted(found.items()))


async def half_open(stage: Stage) -> str:
    """Connections on which nothing is said."""
    peers = [await stage.peer() for _ in range(HALF_OPEN)]
    started = time.monotonic()
    async with stage.session():
        pass
    let_in = time.monotonic() - started
    ended = await asyncio.gather(*(peer.ended(6.0) for peer in peers))
    for peer in peers:
        peer.sock.close()
    assert all(ended), f"{ended.count(False)} are still open"
    return (
        f"all ended within {time.monotonic() - started:.0f} s; a session in {let_in * 1000:.0f} ms"
    )


async def slow_header(stage: Stage) -> str:
    peer = await stage.peer()
    for octet in b"GET /v1/tts HTTP/1.1\r\nX: " + b"y" * 100:
        try:
            await peer.send(bytes([octet]))
        except OSError:
            break
        await asyncio.sleep(0.05)
    head = await peer.head()
    peer.sock.close()
    assert b" 408 " in head, head
    return head.split(b"\r\n")[0].decode()


async def stopped_reader(stage: Stage) -> str:
    slow = await stage.peer(receive_buffer=4_096)
    await slow.upgrade("/v1/tts?lead_ms=30000")
    await slow.frame(TEXT, LONG_TURN)
    started = time.monotonic()
    await stage.settled(seconds=12.0)
    slow.sock.close()
    return f"dropped after {time.monotonic() - started:.0f} s"


async def half_closed(stage: Stage) -> str:
    async with stage.peers(20) as peers:
        for peer in peers:
            await peer.frame(TEXT, LONG_TURN)
            peer.sock.shutdown(socket.SHUT_WR)
        await stage.settled(seconds=8.0)
    return "20 sessions gone"


async def killed(stage: Stage) -> str:
    parts = (b"\x81", b"\x81\xfe\x01", b"\x81\x85\x00\x00\x00\x00he", frame_bytes(CLOSE)[:3])
    for at in range(200):
        peer = await stage.peer()
        await peer.upgrade("/v1/tts")
        await peer.send(parts[at % 4])
        peer.abort()
    await stage.settled()
    return "200 sessions gone"


def form(audio: bytes) -> tuple[bytes, str]:
    """A multipart body with a recording, and its type."""
    head = (
        b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nbroken\r\n--x\r\n'
        b'Content-Disposition: form-data; name="audio"; filename="a.wav"\r\n\r\n'
    )
    return head + audio + b"\r\n--x--\r\n", "Content-Type: multipart/form-data; boundary=x"


async def broken_uploads(stage: Stage) -> str:
    wav = recordings.encoded(recordings.voice())
    found: Counter[int] = Counter()
    for seed in range(20):
        chance = random.Random(seed)
        audio = bytearray(wav[: chance.randrange(20, len(wav))])
        for _ in range(40):
            audio[chance.randrange(min(len(audio), 80))] = chance.randrange(256)
        body, kind = form(bytes(audio))
        cut = body if seed % 2 else body[: chance.randrange(len(body))]
        status, _ = await stage.request("POST", "/v1/voices", cut, kind)
        found[status] += 1
        if status == 201:  # the damage was none that matters
            await stage.request("DELETE", "/v1/voices/broken")
    assert set(found) <= {201, 400, 409, 413, 415, 422, 429, 503}, found
    return ", ".join(f"{status}: {count}" for status, count in sorted(found.items()))


async def huge_upload(stage: Stage) -> str:
    peer = await stage.peer()
    await peer.send(
        b"POST /v1/voices HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n"
        b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    head = await peer.head()
    peer.sock.close()
    assert b" 413 " in head, head
    return head.split(b"\r\n")[0].decode()


async def slow_upload(stage: Stage) -> str:
    peer = await stage.peer()
    await peer.send(
        b"POST /v1/voices HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n"
        b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    started = time.monotonic()
    with contextlib.suppress(OSError):
        while time.monotonic() - started < 8.0:
            await peer.send(b"x")
            if await peer.ended(0.1):
                break
    took = time.monotonic() - started
    peer.sock.close()
    assert took < 5.0, took
    return f"dropped after {took:.0f} s"


BROKEN = [
    Attack("300 sockets with frames of chance", "each is closed or dropped", frames),
    Attack("1,800 mutated messages", "errors by name, none of ours", fuzzed_messages),
    Attack("200 mutated requests", "no status of 500 or more", fuzzed_requests),
    Attack(f"{HALF_OPEN} connections that say nothing", "ended, and nobody waits", half_open),
    Attack("a header of an octet each 50 ms", "408", slow_header),
    Attack("a client that stops reading", "dropped", stopped_reader),
    Attack("20 clients that half close", "their sessions end", half_closed),
    Attack("200 sockets killed within a frame", "their sessions end", killed),
    Attack("20 broken recordings", "each refused", broken_uploads),
    Attack("an upload of 100 GB", "413 before it is read", huge_upload),
    Attack("an upload of an octet each 0.1 s", "dropped after body_timeout", slow_upload),
]
