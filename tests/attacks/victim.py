"""A client that behaves, in a process of its own: `python -m tests.attacks.victim PORT`.

It comes from another address than the attacks, speaks one turn after another, and prints a line of
JSON for each: its reason, the underruns as the server counts them, and how long it took.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from typing import Any

import websockets

ADDRESS = "127.0.0.2"
TEXT = "What I have to say."  # 19 tokens, which are 1.5 s of sound


async def speak(port: int) -> None:
    """One session, until it is over."""
    url = f"ws://127.0.0.1:{port}/v1/tts?lead_ms=700"
    async with websockets.connect(url, compression=None, local_addr=(ADDRESS, 0)) as socket:
        while True:
            started = time.monotonic()
            await socket.send(json.dumps({"type": "text", "text": TEXT, "end": True}))
            done: dict[str, Any] = {}
            while done.get("type") != "turn.done":
                raw = await socket.recv()
                done = {} if isinstance(raw, bytes) else json.loads(raw)
            told = {name: done[name] for name in ("reason", "underruns", "ttfa_ms")}
            sys.stdout.write(json.dumps(told | {"began": started}) + "\n")
            sys.stdout.flush()
            if done["reason"] == "error":
                await asyncio.sleep(0.25)


async def main(port: int) -> None:
    """For ever; a session that is lost is one with reason `lost`."""
    while True:
        began = time.monotonic()
        with contextlib.suppress(OSError, websockets.WebSocketException):
            await speak(port)
        lost = {"reason": "lost", "underruns": 0, "ttfa_ms": None, "began": began}
        sys.stdout.write(json.dumps(lost) + "\n")
        sys.stdout.flush()
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
