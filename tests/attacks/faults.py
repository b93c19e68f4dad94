"""Faults: an engine that fails, dies or hangs, a disk that is full, and limits of the system that
are reached while the server runs, or before it starts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import psutil

from tests.attacks.stage import Attack, Stage
from tests.engine.killing import disturbed
from tests.serving import serve_command

GIVE = json.dumps({"name": "given", "embedding": [0.25, -0.5] * 32}).encode()
AS_JSON = "Content-Type: application/json"


async def spoken_again(stage: Stage, since: float, seconds: float = 40.0) -> float:
    """Seconds until the victim has had a whole turn that began after `since`."""
    while time.monotonic() < since + seconds:
        if any(turn["reason"] == "complete" and turn["began"] > since for turn in stage.turns):
            return time.monotonic() - since
        await asyncio.sleep(0.05)
    raise AssertionError(f"no speech again: {stage.turns[-3:]}")


async def engine_raises(stage: Stage) -> str:
    fault, began = stage.folder / "raise", time.monotonic()
    fault.touch()
    while fault.exists():
        assert time.monotonic() < began + 10.0, "no step was made"
        await asyncio.sleep(0.02)
    return f"speech again after {await spoken_again(stage, time.monotonic()):.1f} s"


async def engine_killed(stage: Stage) -> str:
    stage.engine.send_signal(signal.SIGKILL)
    return f"speech again after {await spoken_again(stage, time.monotonic()):.1f} s"


async def engine_hangs(stage: Stage) -> str:
    stage.engine.send_signal(signal.SIGSTOP)
    return f"speech again after {await spoken_again(stage, time.monotonic()):.1f} s"


@contextlib.contextmanager
def limited(process: psutil.Process, limit: int, most: int) -> Iterator[None]:
    """A soft limit of a process that runs, for the block."""
    before = process.rlimit(limit)
    process.rlimit(limit, (most, before[1]))
    try:
        yield
    finally:
        process.rlimit(limit, before)


async def full_disk(stage: Stage) -> str:
    """RLIMIT_FSIZE stands for a full disk: every write of more than nothing fails."""
    with limited(stage.process, resource.RLIMIT_FSIZE, 16):
        status, body = await stage.request("POST", "/v1/voices", GIVE, AS_JSON)
    assert 500 <= status < 600, (status, body)
    left = [one.name for one in (stage.folder / "voices").rglob("*given*")]
    again, _ = await stage.request("POST", "/v1/voices", GIVE, AS_JSON)
    await stage.request("DELETE", "/v1/voices/given")
    assert (left, again) == ([], 201), (left, again)
    return f"{status} {json.loads(body)['code']}; with room again 201"


async def few_descriptors(stage: Stage) -> str:
    room = stage.process.num_fds() + 20
    with limited(stage.process, resource.RLIMIT_NOFILE, room):
        peers = [await stage.peer() for _ in range(60)]
        await asyncio.sleep(1.0)
        used = stage.process.num_fds()
        for peer in peers:
            peer.sock.close()
        since = time.monotonic()
        async with asyncio.timeout(10):
            status, _ = await stage.request("GET", "/readyz")
        assert status == 200
    return f"{used} of {room} used; answers again after {time.monotonic() - since:.1f} s"


async def little_memory(stage: Stage) -> str:
    """Of address space 64 MiB more than now, while clients send as much as they may."""
    most = stage.process.memory_info().vms + 64 * 2**20
    text = json.dumps({"type": "text", "text": "x" * 16_000})
    with limited(stage.process, resource.RLIMIT_AS, most):
        async with contextlib.AsyncExitStack() as stack:
            sockets = [await stack.enter_async_context(stage.session()) for _ in range(20)]
            for _ in range(5):
                for socket in sockets:
                    await socket.send(text)
            status, _ = await stage.request("GET", "/livez")
    assert status == 200
    return "20 turns of 80,000 characters taken"


async def start_with(limit: str, mib: int) -> str:
    """How a start with so little ends."""
    amount = mib * 2**20
    server = await asyncio.create_subprocess_exec(
        *serve_command("--engine", "fake"),
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=partial(resource.setrlimit, getattr(resource, limit), (amount, amount)),
    )
    _, said = await server.communicate()
    text = said.decode()
    assert (server.returncode, "Traceback" in text) == (2, False), text
    assert limit in text and str(mib) in text, text
    return text.strip()


async def engines_die(stage: Stage) -> str:
    """Turns of the demo voice are compared with undisturbed ones, sample by sample."""
    signals = [signal.SIGKILL, signal.SIGSTOP]
    found = await disturbed("demo", 2, moments=4, live=3, seed=2, signals=signals)
    assert (found.moments, found.lost, found.different) == (4, 0, 0) and found.moves, found
    return f"{found.turns} turns, {found.moves} moves, none lost and none different"


def little(limit: str, mib: int) -> Callable[[Stage], Awaitable[str]]:
    return lambda stage: start_with(limit, mib)


GONE = frozenset({"error"})
"""How turns end that an engine has begun and does not end."""

FAULTS = [
    Attack(
        "a step of the engine raises",
        "its turns go on",
        engine_raises,
        GONE,
        "engine.step_failed",
    ),
    Attack("the engine is killed", "started again", engine_killed, GONE),
    Attack("the engine hangs (SIGSTOP)", "killed after 10 s, started again", engine_hangs, GONE),
    Attack("a voice for a full disk", "507, and nothing half written", full_disk),
    Attack(
        "60 connections, descriptors for 20",
        "sessions go on; then it answers",
        few_descriptors,
        logs="out of system resource",
    ),
    Attack("64 MiB of memory left", "sessions go on", little_memory),
]
ALONE = [
    Attack("two real engines die at 4 random moments", "their turns go on alike", engines_die),
    Attack("a start with 100 MiB of address space", "a sentence", little("RLIMIT_AS", 100)),
    Attack("a start with 100 MiB of data", "a sentence", little("RLIMIT_DATA", 100)),
]
"""Those that need no victim: they start what they attack."""
