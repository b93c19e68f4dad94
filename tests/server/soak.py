"""A soak of the whole front on the fake engine: `python tests/server/soak.py --seconds 60`.

A server process and this client process, hundreds of sessions that talk like voice agents: deltas
at a language model's pace, barge-ins, pauses, clients that vanish. At the end all sessions leave,
and the report says what was heard, how long packets spent in the front, and what did not go away.
Prints one JSON object; exits with 1 if the front made a listener run dry or something leaked.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import random
import signal
import sys
import time
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import psutil
import websockets

from realtime_tts.background import cancel
from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.link import Audio
from realtime_tts.garbage import calm_garbage_collector
from realtime_tts.metrics import Metrics
from realtime_tts.protocol.session import Session
from realtime_tts.server.connection import Connection
from realtime_tts.server.run import running
from realtime_tts.server.utterances import Utterances
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tts_scheduler import SchedulerConfig

DELTA_CHARS = 5
DELTA_SECONDS = 0.04
GONE = ("sessions", "utterances", "tasks", "fds", "objects")
TURN_SECONDS = 30.0  # far more than any turn may take
WARM_UP_SHARE = 0.25  # memory is compared with what it was after this share of the time


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


# The server process -------------------------------------------------------------------------


class FrontDelays:
    """How long sound spends in the front: engine event taken to packet handed to the socket.

    Counted in bins of 0.1 ms, so that the measurement itself does not look like a leak.
    `to_blame` counts late packets that would have been in time in a front that takes no time.
    """

    def __init__(self) -> None:
        self.bins = [0] * 10_000
        self.to_blame = 0
        self._taken: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()

    def install(self) -> None:
        on_event, on_sent = Utterances.take, Utterances.sent

        def take(turn: Any, event: Any, now: float) -> Any:
            if isinstance(event, Audio):
                self._taken[turn] = time.monotonic()
            return on_event(turn, event, now)

        def sent(turn: Any, samples: int, now: float) -> float:
            delay, late = now - self._taken.get(turn, now), on_sent(turn, samples, now)
            self.bins[min(int(delay * 10_000), len(self.bins) - 1)] += 1
            self.to_blame += 0 < late <= delay
            return late

        Utterances.take = take  # type: ignore[method-assign, assignment]
        Utterances.sent = sent  # type: ignore[method-assign, assignment]

    def percentile_ms(self, share: float) -> float:
        left = share * sum(self.bins)
        for index, count in enumerate(self.bins):
            left -= count
            if left <= 0:
                return index / 10
        return 0.0


async def serve(sessions: int, step_seconds: float) -> None:
    """Serve; print the port, then a line of figures for each line read."""
    delays = FrontDelays()
    delays.install()
    slots = 2 * sessions
    engine = FakeEngine(
        FakeEngineConfig(slots=slots, step_seconds=step_seconds, frames_per_token=1)
    )
    metrics = Metrics()
    link = InProcessEngine(lambda progress: engine, SchedulerConfig(slots=slots), observer=metrics)
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=2 * sessions))
    tokenizer = Qwen2Tokenizer({char: index for index, char in enumerate(ALPHABET)}, [])
    process = psutil.Process()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with running(config, link, lambda: tokenizer, metrics) as server:
        calm_garbage_collector()
        say({"port": server.port})
        while await reader.readline():
            value = metrics.registry.get_sample_value
            say(
                {
                    "sessions": server.front.sessions,
                    "utterances": server.front.engine.open_utterances + engine.open_utterances,
                    "tasks": len(asyncio.all_tasks()),
                    "objects": session_objects() if not server.front.sessions else 0,
                    "fds": process.num_fds(),
                    "rss_mb": round(process.memory_info().rss / 2**20, 1),
                    "packets": value("tts_packets_total"),
                    "packets_late": value("tts_packets_late_total"),
                    "audio_seconds": round(value("tts_audio_seconds_total") or 0, 1),
                    "front_ms_p50": delays.percentile_ms(0.5),
                    "front_ms_p99": delays.percentile_ms(0.99),
                    "front_ms_max": delays.percentile_ms(1.0),
                    "front_to_blame": delays.to_blame,
                    "lag_over_50_ms": lag_over(metrics, 0.05),
                    "step_ms_mean": round(mean_step(metrics) * 1000, 1),
                    "cpu_seconds": round(sum(process.cpu_times()[:2]), 1),
                }
            )


def session_objects() -> int:
    """Objects that should have gone with their sessions."""
    gc.collect()
    kinds = (Connection, Session, Utterances)
    return sum(isinstance(thing, kinds) for thing in gc.get_objects())


def lag_over(metrics: Metrics, seconds: float) -> float:
    """How often the event loop woke a timer later than this."""
    value = metrics.registry.get_sample_value
    total = value("tts_event_loop_lag_seconds_count") or 0.0
    return total - (value("tts_event_loop_lag_seconds_bucket", {"le": str(seconds)}) or 0.0)


def mean_step(metrics: Metrics) -> float:
    value = metrics.registry.get_sample_value
    steps = value("tts_engine_step_seconds_count") or 1.0
    return (value("tts_engine_step_seconds_sum") or 0.0) / steps


def say(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


# The clients --------------------------------------------------------------------------------


@dataclass
class Heard:
    """What all clients of a run noted."""

    reasons: Counter[str] = field(default_factory=Counter)
    underruns: int = 0
    underruns_of_held_turns: int = 0
    late_bytes: int = 0
    vanished: int = 0
    turned_away: int = 0
    ttfa_ms: list[float] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Client:
    """One session after the other, until the time is up."""

    def __init__(self, url: str, seed: int, until: float, heard: Heard) -> None:
        self._url = url
        self._rng = random.Random(seed)
        self._until = until
        self._heard = heard
        self._turns = 0

    async def run(self) -> None:
        await asyncio.sleep(self._rng.random() * 2)
        while time.monotonic() < self._until:
            try:
                async with websockets.connect(self._url, compression=None) as socket:
                    await socket.recv()
                    await self._turns_on(socket)
            except websockets.InvalidStatus as refusal:
                body = json.loads(refusal.response.body or b"{}")
                if body.get("code") != "too_many_sessions":
                    raise
                self._heard.turned_away += 1  # no turn would be free: the scheduler's right
                await asyncio.sleep(body["retry_after_ms"] / 1_000)

    async def _turns_on(self, socket: websockets.ClientConnection) -> None:
        """One turn after the other, until the time is up or the client vanishes."""
        while time.monotonic() < self._until:
            await self._turn(socket)
            if self._rng.random() < 0.03:
                self._heard.vanished += 1
                socket.transport.abort()
                return
            await asyncio.sleep(self._rng.random())

    async def _turn(self, socket: websockets.ClientConnection) -> None:
        self._turns += 1
        text = "".join(self._rng.choice("abcde fghij klmno. ") for _ in range(25)) * 2
        writer = asyncio.create_task(self._write(socket, text, self._rng.random() < 0.25))
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._listen(socket)
        finally:
            await cancel(writer)

    async def _write(self, socket: websockets.ClientConnection, text: str, barge_in: bool) -> None:
        for start in range(0, len(text), DELTA_CHARS):
            delta = text[start : start + DELTA_CHARS]
            turn_id = f"turn-{self._turns}"
            await socket.send(json.dumps({"type": "text", "turn_id": turn_id, "text": delta}))
            await asyncio.sleep(DELTA_SECONDS)
        await socket.send('{"type":"turn.end"}')
        if barge_in:
            await asyncio.sleep(self._rng.random() * 2)
            await socket.send('{"type":"interrupt"}')

    async def _listen(self, socket: websockets.ClientConnection) -> None:
        """Until turn.done has come, and been heard; no audio but between turn.started and it."""
        on_air, started = False, time.monotonic()
        while True:
            raw = await socket.recv()
            if isinstance(raw, bytes):
                self._heard.late_bytes += 0 if on_air else len(raw)
                continue
            message = json.loads(raw)
            if message["type"] == "turn.started":
                on_air, started = True, time.monotonic()
            elif message["type"] == "turn.interrupted":
                on_air = False
            elif message["type"] == "error":
                refused = message["code"] == "overloaded"  # the scheduler's right
                (self._heard.refusals if refused else self._heard.problems).append(message["code"])
            elif message["type"] == "turn.done":
                self._note(message)
                heard_at = started + message["samples"] / 24_000
                if message["reason"] == "complete":
                    await asyncio.sleep(max(0.0, heard_at - time.monotonic()))
                return

    def _note(self, done: dict[str, Any]) -> None:
        self._heard.reasons[done["reason"]] += 1
        self._heard.underruns += done["underruns"]
        if done["held_ms"]:
            self._heard.underruns_of_held_turns += done["underruns"]
        if done["ttfa_ms"] is not None:
            self._heard.ttfa_ms.append(done["ttfa_ms"])


async def soak(sessions: int, seconds: float, step_seconds: float) -> dict[str, Any]:
    """Run it; gives the report."""
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        "--serve",
        "--sessions",
        str(sessions),
        "--step-seconds",
        str(step_seconds),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        url = f"ws://127.0.0.1:{json.loads(await server.stdout.readline())['port']}/v1/tts"
        idle = await figures(server)
        heard = Heard()
        until = time.monotonic() + seconds
        clients = [
            asyncio.create_task(Client(url, seed, until, heard).run()) for seed in range(sessions)
        ]
        await asyncio.sleep(seconds * WARM_UP_SHARE)
        early = await figures(server)
        results = await asyncio.gather(*clients, return_exceptions=True)
        busy = await figures(server)
        heard.problems += [repr(error) for error in results if isinstance(error, Exception)]
        after = await settle(server, idle)
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.send_signal(signal.SIGKILL)
        await server.wait()
    return report(heard, idle, early, busy, after)


async def figures(server: asyncio.subprocess.Process) -> dict[str, Any]:
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(b"\n")
    found: dict[str, Any] = json.loads(await server.stdout.readline())
    return found


async def settle(server: asyncio.subprocess.Process, idle: dict[str, Any]) -> dict[str, Any]:
    """Figures once everybody has left, at most three seconds later."""
    for _ in range(30):
        after = await figures(server)
        if all(after[name] <= idle[name] for name in GONE):
            break
        await asyncio.sleep(0.1)
    return after


def report(
    heard: Heard,
    idle: dict[str, Any],
    early: dict[str, Any],
    busy: dict[str, Any],
    after: dict[str, Any],
) -> dict[str, Any]:
    left = {name: after[name] - idle[name] for name in GONE}
    return {
        "turns": dict(heard.reasons),
        "vanished": heard.vanished,
        "refused": len(heard.refusals),
        "turned_away": heard.turned_away,
        "problems": heard.problems[:10],
        "underruns": heard.underruns,
        "underruns_of_held_turns": heard.underruns_of_held_turns,
        "late_bytes": heard.late_bytes,
        "ttfa_ms_p50": round(percentile(heard.ttfa_ms, 0.5), 1),
        "ttfa_ms_p95": round(percentile(heard.ttfa_ms, 0.95), 1),
        "left_behind": left,
        "rss_mb": [idle["rss_mb"], early["rss_mb"], busy["rss_mb"], after["rss_mb"]],
        "server": {
            name: busy[name]
            for name in busy
            if name.startswith(("packets", "audio", "front", "lag", "step", "cpu"))
        },
    }


def passed(found: dict[str, Any]) -> bool:
    """No gap that the front is to blame for, not a byte too late, nothing left behind."""
    faults = [
        found["server"]["front_to_blame"],
        found["late_bytes"],
        found["problems"],
        *found["left_behind"].values(),
    ]
    return not any(faults)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--step-seconds", type=float, default=0.02)
    parser.add_argument("--serve", action="store_true", help="be the server process")
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.sessions, arguments.step_seconds))
        return 0
    found = asyncio.run(soak(arguments.sessions, arguments.seconds, arguments.step_seconds))
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0 if passed(found) else 1


if __name__ == "__main__":
    sys.exit(main())
