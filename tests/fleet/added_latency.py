"""How much the ingress adds: `python -m tests.fleet.added_latency [--pings N]`, on idle cores.

One server in a process of its own, one HAProxy, and a socket to each: WebSocket pings go over both
in turn, so that whatever else the machine does meets both alike, and so do handshakes, up to
`ready`. A server takes fifty pings a second of a socket.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from realtime_tts.fleet.haproxy import IngressConfig
from tests.fleet.running import (
    free_port,
    ingress_running,
    open_session,
    server_process,
    until_ready,
)
from tests.fronts.running import Session

_PAUSE_SECONDS = 0.022
_HANDSHAKES = 200


async def ping_seconds(session: Session) -> float:
    """There and back."""
    began = time.perf_counter()
    await (await session.socket.ping())
    return time.perf_counter() - began


async def handshake_seconds(port: int) -> float:
    """From the connection to `ready`."""
    began = time.perf_counter()
    session = await open_session(port)
    taken = time.perf_counter() - began
    await session.close()
    return taken


def in_turn(number: int) -> tuple[int, int]:
    """Who comes first finds the machine asleep: each does, every other time."""
    return (0, 1) if number % 2 else (1, 0)


def row(name: str, direct: list[float], through: list[float]) -> str:
    """Milliseconds: the median and the 99th percentile, and what is added to each."""
    cells = []
    for share in (0.5, 0.99):
        plain, proxied = (
            sorted(one)[int(share * (len(one) - 1))] * 1000 for one in (direct, through)
        )
        cells += [f"{plain:.2f}", f"{proxied:.2f}", f"{proxied - plain:+.2f}"]
    return f"| {name} | " + " | ".join(cells) + " |"


async def measure(pings: int) -> None:
    port = free_port()
    async with server_process(8) as one:
        config = IngressConfig(bind=f"127.0.0.1:{port}", slots=2)
        async with ingress_running(config, [one.member]) as ingress:
            await until_ready(ingress, 1)
            sessions = [await open_session(one.member.port), await open_session(port)]
            taken: list[list[float]] = [[], []]
            for number in range(pings):
                for which in in_turn(number):
                    taken[which].append(await ping_seconds(sessions[which]))
                await asyncio.sleep(_PAUSE_SECONDS)
            shaken: list[list[float]] = [[], []]
            for number in range(_HANDSHAKES):
                for which in in_turn(number):
                    where = (one.member.port, port)[which]
                    shaken[which].append(await handshake_seconds(where))
            for session in sessions:
                await session.close()
    print("| ms | p50 direct | through | added | p99 direct | through | added |")  # noqa: T201
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")  # noqa: T201
    print(row(f"{pings} pings", *taken))  # noqa: T201
    print(row(f"{_HANDSHAKES} handshakes", *shaken))  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pings", type=int, default=1_000)
    asyncio.run(measure(parser.parse_args().pings))
