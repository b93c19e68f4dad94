"""What a packet costs the front: `python tests/server/throughput.py --streams 200,400`.

A server process with a fake engine, and this process with clients that count bytes and parse
nothing. Every stream plays in real time. Prints a JSON object a level: packets sent in a second,
the front's CPU time for one (its process's, without an engine in a process of its own), how many
were late and how late timers woke. `--profile` writes where the front's event loop spends its time.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import cProfile
import json
import os
import pstats
import struct
import sys
import time
from typing import Any

import psutil

from realtime_tts.config import LimitsConfig, ServerConfig, SocketConfig
from realtime_tts.engine.links import make_links
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.garbage import calm_garbage_collector
from realtime_tts.metrics import Metrics
from realtime_tts.server.run import running
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tts_scheduler import SchedulerConfig

FRAMES_PER_SECOND = 12.5
FRAMES_PER_TOKEN = 3
SETTLE_SECONDS = 4.0  # until the leads are full
STARTS_PER_SECOND = 100.0  # of turns that all begin at once: four in an engine step

# The server process -------------------------------------------------------------------------


async def serve(streams: int, step_seconds: float, processes: int, profile: str | None) -> None:
    """Serve; print the port, then a line of figures for each line read."""
    slots = streams if processes == 0 else -(-streams // processes)
    config = EngineConfig(
        kind="fake",
        step_seconds=step_seconds,
        devices=("cpu",) * processes,
        scheduler=SchedulerConfig(slots=slots, utilisation=1_000.0, max_queue=4),
    )
    metrics = Metrics()
    settings = ServerConfig(
        port=0,
        limits=LimitsConfig(max_sessions=2 * streams),
        socket=SocketConfig(ping_interval=3_600.0),  # our clients do not answer
    )
    tokenizer = Qwen2Tokenizer({char: index for index, char in enumerate(ALPHABET)}, [])
    process = psutil.Process()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    link = make_links((config,), metrics, lambda *progress: None)
    async with running(settings, link, lambda: tokenizer, metrics) as server:
        calm_garbage_collector()
        say({"port": server.port})
        profiler = cProfile.Profile()
        value = metrics.registry.get_sample_value
        while await reader.readline():
            say(
                {
                    "packets": value("tts_packets_total"),
                    "packets_late": value("tts_packets_late_total"),
                    "turns": value("tts_open_turns"),
                    "cpu_seconds": sum(process.cpu_times()[:2]),
                    "engines_cpu_seconds": sum(
                        sum(child.cpu_times()[:2]) for child in process.children()
                    ),
                    "lags": value("tts_event_loop_lag_seconds_count"),
                    "lags_over_20_ms": (value("tts_event_loop_lag_seconds_count") or 0)
                    - (value("tts_event_loop_lag_seconds_bucket", {"le": "0.02"}) or 0),
                }
            )
            if profile is not None:
                profiler.enable()
        profiler.disable()
        if profile is not None:
            with open(profile, "w", encoding="utf-8") as out:  # noqa: ASYNC230 - measured, over
                stats = pstats.Stats(profiler, stream=out).sort_stats("tottime")
                stats.print_stats(40)


def say(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


# The clients --------------------------------------------------------------------------------


class Stream(asyncio.Protocol):
    """A bare socket: one handshake, one text, and then only bytes to count."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        key = base64.b64encode(os.urandom(16)).decode()
        message = json.dumps({"type": "text", "text": self._text, "end": True}).encode()
        frame = b"\x81\xfe" + struct.pack("!H", len(message)) + bytes(4) + message
        self._frame = frame
        self._transport = transport
        transport.write(
            b"GET /v1/tts HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: " + key.encode() + b"\r\n\r\n"
        )

    def data_received(self, data: bytes) -> None:
        if not self.received:
            assert data.startswith(b"HTTP/1.1 101"), data[:200]
            self._transport.write(self._frame)
        self.received += len(data)

    def close(self) -> None:
        self._transport.abort()


async def measure(streams: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One level: start a server, let the streams settle, count for some seconds."""
    flags = ["--serve", "--streams", str(streams), "--step-seconds", str(arguments.step_seconds)]
    flags += ["--processes", str(arguments.processes)]
    flags += ["--profile", arguments.profile] if arguments.profile else []
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        *flags,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdin is not None and server.stdout is not None
    port = json.loads(await server.stdout.readline())["port"]
    settle = SETTLE_SECONDS + streams / STARTS_PER_SECOND
    frames = (arguments.seconds + 2 * settle + 10) * FRAMES_PER_SECOND
    text = "x" * round(frames / FRAMES_PER_TOKEN)
    loop = asyncio.get_running_loop()
    sockets = []
    for _ in range(streams):
        _, stream = await loop.create_connection(lambda: Stream(text), "127.0.0.1", port)
        sockets.append(stream)
    await asyncio.sleep(settle)

    async def figures() -> dict[str, Any]:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(b"\n")
        found: dict[str, Any] = json.loads(await server.stdout.readline())
        clients = sum(psutil.Process().cpu_times()[:2])
        return found | {"time": time.monotonic(), "clients_cpu_seconds": clients}

    before = await figures()
    await asyncio.sleep(arguments.seconds)
    after = await figures()
    server.stdin.write_eof()
    await server.wait()
    for stream in sockets:
        stream.close()
    return report(streams, before, after)


def report(streams: int, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    change = {name: after[name] - before[name] for name in before}
    packets = max(change["packets"], 1.0)
    return {
        "streams": streams,
        "speaking": after["turns"],
        "packets_per_second": round(packets / change["time"]),
        "front_us_per_packet": round(change["cpu_seconds"] / packets * 1e6, 1),
        "front_cpu_share": round(change["cpu_seconds"] / change["time"], 2),
        "engines_cpu_share": round(change["engines_cpu_seconds"] / change["time"], 2),
        "clients_cpu_share": round(change["clients_cpu_seconds"] / change["time"], 2),
        "packets_late": change["packets_late"],
        "timers_over_20_ms_late": f"{change['lags_over_20_ms'] / max(change['lags'], 1):.1%}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--streams", default="200")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--step-seconds", type=float, default=0.01)
    parser.add_argument("--processes", type=int, default=1, help="0: the engine is a thread")
    parser.add_argument("--profile", metavar="FILE")
    parser.add_argument("--serve", action="store_true", help="be the server process")
    arguments = parser.parse_args()
    if arguments.serve:
        streams = int(arguments.streams)
        asyncio.run(serve(streams, arguments.step_seconds, arguments.processes, arguments.profile))
        return
    for streams in arguments.streams.split(","):
        with contextlib.suppress(KeyboardInterrupt):
            say(asyncio.run(measure(int(streams), arguments)))


if __name__ == "__main__":
    main()
