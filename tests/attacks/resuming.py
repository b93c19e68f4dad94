"""Resumptions that no server has given, and too many that one has."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from random import Random
from typing import Any

import websockets

from tests.attacks.stage import Attack, Stage
from tests.server.made_up import conversation
from tests.server.resuming import Kept, hear
from tests.server.talking import Talker

ON = "?resume=on&lead_ms=30000"
TEXT = 'Wait.<break time="300ms"/> Go on. The tide is coming in. It costs $2, or so: good morning!'
MADE_UP, REPEATED = 300, 200


async def kept_after(stage: Stage, packets: int, text: str = TEXT) -> Kept:
    """A turn whose socket is lost after so many packets."""
    kept = Kept("a")
    async with stage.session(ON) as socket:
        message = {"type": "text", "turn_id": "a", "text": text, "end": True}
        await socket.send(json.dumps(message))
        await hear(Talker(socket), kept, packets)
    return kept


async def hold(stage: Stage, said: list[str]) -> Counter[str]:
    """Say all that and leave; the codes of errors and warnings."""
    found: Counter[str] = Counter()
    async with stage.session(ON) as socket:
        with contextlib.suppress(websockets.ConnectionClosed):
            for message in [*said, '{"type":"session.close"}']:
                await socket.send(message)
        with contextlib.suppress(websockets.ConnectionClosed, TimeoutError):
            async with asyncio.timeout(5.0):
                while True:
                    raw = await socket.recv()
                    found.update(codes_in(raw))
    return found


def codes_in(raw: str | bytes) -> list[str]:
    message: dict[str, Any] = {} if isinstance(raw, bytes) else json.loads(raw)
    return [message["code"]] if "code" in message else []


async def made_up(stage: Stage) -> str:
    found: Counter[str] = Counter()
    kept = [await kept_after(stage, packets) for packets in (2, 3, 9)]
    for seed in range(MADE_UP):
        stage.source = f"127.0.3.{seed % 250 + 1}"  # bad messages of one address count together
        found += await hold(stage, conversation(Random(seed), kept, TEXT))
    assert "internal" not in found, found
    assert found["cannot_resume"] and found["bad_message"] and found["turn_known"], found
    return f"{sum(found.values()):,} errors and warnings of {len(found)} kinds"


async def repeated(stage: Stage) -> str:
    """What a server has signed or would, again and again, and interrupted at once."""
    kept, found = await kept_after(stage, 120, "x" * 300), Counter[str]()
    async with stage.session(ON) as socket:
        for number in range(REPEATED):
            kept.id = f"again-{number}"
            end = {"type": "text", "turn_id": kept.id, "text": "x" * 300, "end": True}
            for message in [*kept.resume(), end, {"type": "interrupt"}]:
                await socket.send(json.dumps(message))
            raw: str | bytes = ""
            while '"turn.done"' not in str(raw):
                raw = await socket.recv()
                found.update(codes_in(raw))
            await asyncio.sleep(0.02)  # the limit on messages is another attack
    went_on = REPEATED - found["cannot_resume"]
    assert found["cannot_resume"] > REPEATED // 2, found
    return f"{went_on} at the sample, {found['cannot_resume']} at the next word"


RESUMING = [
    Attack(f"{MADE_UP} sessions with made-up resumptions", "errors by name, none of ours", made_up),
    Attack(
        f"the same turn resumed {REPEATED} times",
        "no more speech is brought than one turn has, and time since",
        repeated,
        ends=frozenset({"error"}),  # refused while others have the slots
    ),
]
