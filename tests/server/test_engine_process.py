"""The whole server with engines in processes of their own: what listeners notice when one ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import websockets

from realtime_tts.config import ServerConfig
from realtime_tts.engine.links import make_links
from realtime_tts.engine.load import load_tokenizer
from realtime_tts.engine.multiprocess import MultiprocessEngine
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.metrics import Metrics
from realtime_tts.server.run import RunningServer, running
from tests.serving import serve_command, serving_beside
from tests.waiting import SECONDS, until
from tts_scheduler import SchedulerConfig


@contextlib.asynccontextmanager
async def serving(
    engines: int = 1, failover_seconds: float = 30.0, **options: Any
) -> AsyncIterator[tuple[RunningServer, MultiprocessEngine]]:
    scheduler = SchedulerConfig(**{"slots": 64} | options)
    config = EngineConfig(kind="fake", devices=("cpu",) * engines, scheduler=scheduler)
    metrics = Metrics()
    link = make_links((config,), metrics, lambda *progress: None)
    settings = ServerConfig(port=0, failover_seconds=failover_seconds)
    async with running(settings, link, partial(load_tokenizer, config), metrics) as server:
        yield server, link  # type: ignore[misc]


class Heard:
    """The sound of a turn that has come so far."""

    samples = 0


async def say(
    socket: websockets.ClientConnection, text: str, heard: Heard | None = None
) -> list[dict[str, Any]]:
    """The messages of a turn, up to its end; sound is counted in the last one, and in `heard` as it
    comes."""
    heard = heard or Heard()
    await socket.send(json.dumps({"type": "text", "text": text, "end": True}))
    messages: list[dict[str, Any]] = []
    while not messages or messages[-1]["type"] != "turn.done":
        raw = await socket.recv()
        if isinstance(raw, bytes):
            heard.samples += len(raw) // 2
        else:
            messages.append(json.loads(raw))
    assert messages[-1]["samples"] == heard.samples
    return messages


async def connected(
    server: RunningServer, stack: contextlib.AsyncExitStack, count: int
) -> list[websockets.ClientConnection]:
    connect = partial(websockets.connect, server.websocket_url)
    return [await stack.enter_async_context(connect()) for _ in range(count)]


async def speaking(
    sockets: list[websockets.ClientConnection], text: str
) -> list[asyncio.Task[list[dict[str, Any]]]]:
    """A turn on each; all have begun to sound."""
    heard = [Heard() for _ in sockets]
    turns = [
        asyncio.create_task(say(socket, text, one))
        for socket, one in zip(sockets, heard, strict=True)
    ]
    await until(lambda: all(one.samples for one in heard))
    return turns


async def test_turns_outlive_their_engine() -> None:
    """As long, and with the same report, as where nobody kills it."""
    text = "A sentence that goes on and on, and on. " * 2  # longer than all take to begin
    async with serving(lead_cap=60.0) as (server, _), contextlib.AsyncExitStack() as stack:
        (turn,) = await speaking(await connected(server, stack, 1), text)
        undisturbed = (await turn)[-1]
    assert "moves" not in undisturbed
    async with serving(lead_cap=0.5) as (server, link), contextlib.AsyncExitStack() as stack:
        turns = await speaking(await connected(server, stack, 8), text)
        os.kill(link.pid or 0, signal.SIGKILL)
        async with asyncio.timeout(60):
            ended = await asyncio.gather(*turns)
        assert server.front.engine.open_utterances == 0
        metrics = server.front.metrics.registry
        assert metrics.get_sample_value("tts_moves_total") == 8
    for messages in ended:
        assert [m["type"] for m in messages if m["type"] in ("error", "warning")] == []
        done = messages[-1]
        assert (done["reason"], done["moves"]) == ("complete", 1)
        assert (done["samples"], done["text_chars"]) == (
            undisturbed["samples"],
            undisturbed["text_chars"],
        )


SECOND = 24_000
"""Samples of a second."""
WORDS = "A sentence that goes on and on, and on, with 12 words. " * 2


async def told(server: RunningServer, link: MultiprocessEngine, kills: bool) -> list[Any]:
    """The words of a turn with their times, and the text that was heard of another one when its
    client stopped after 1.8 s; the engine is killed in the middle of both."""
    heard: list[Any] = []
    async with websockets.connect(server.websocket_url) as socket:
        await socket.send(json.dumps({"type": "session.start", "word_times": "on"}))
        for ends in (True, False):
            sound = Heard()
            turn = asyncio.create_task(say(socket, WORDS, sound))
            await until(lambda: sound.samples >= SECOND)  # noqa: B023
            if kills:
                os.kill(link.pid or 0, signal.SIGKILL)
                await until(lambda: not link.status().ready)
                await until(lambda: link.status().ready)
            if not ends:
                await until(lambda: sound.samples >= 2 * SECOND)  # noqa: B023
                await socket.send(json.dumps({"type": "interrupt", "played_ms": 1_800}))
            async with asyncio.timeout(30):
                messages = await turn
            heard.append([m["words"] for m in messages if m["type"] == "turn.words"])
            heard.append([m for m in messages if m["type"] == "turn.interrupted"])
            assert messages[-1].get("moves", 0) == int(kills)
    words, _, _, interrupted = heard
    return [sum(words, []), [(m["text_spoken"], m["text_remaining"]) for m in interrupted]]


async def test_words_and_the_text_that_was_heard_are_those_of_an_undisturbed_turn() -> None:
    one, other = serving(lead_cap=2.5), serving(lead_cap=2.5)
    async with one as calm, other as wild:
        undisturbed, told_all = await asyncio.gather(
            told(*calm, kills=False), told(*wild, kills=True)
        )
    assert told_all == undisturbed
    words, ((spoken, remaining),) = undisturbed
    assert "".join(word["text"] for word in words) == WORDS and spoken and remaining


async def test_a_turn_between_engines_can_be_interrupted() -> None:
    async with serving() as (server, link), websockets.connect(server.websocket_url) as socket:
        (turn,) = await speaking([socket], "A sentence that goes on and on. " * 20)
        os.kill(link.pid or 0, signal.SIGKILL)
        await until(lambda: not link.status().ready)
        await socket.send(json.dumps({"type": "interrupt"}))
        async with asyncio.timeout(SECONDS):
            messages = await turn
        assert messages[-1]["reason"] == "interrupted"
        assert server.front.engine.open_utterances == 0


async def test_without_failover_an_engine_that_is_killed_costs_its_turns() -> None:
    without = serving(failover_seconds=0.0)
    async with without as (server, link), contextlib.AsyncExitStack() as stack:
        assert server.front.engine._link is link, "no codes are kept"
        sockets = await connected(server, stack, 20)
        turns = await speaking(sockets, "A sentence that goes on and on, and on. " * 20)
        os.kill(link.pid or 0, signal.SIGKILL)
        async with asyncio.timeout(SECONDS):
            ended = await asyncio.gather(*turns)
        for messages in ended:
            error = next(message for message in messages if message["type"] == "error")
            assert (error["code"], error["retryable"]) == ("engine_restarted", True)
            assert "send its text again" in error["message"]
            assert messages[-1]["reason"] == "error"
        assert server.front.engine.not_ready() == "the engine restarts"
        assert server.front.engine.dead() is None
        await until(lambda: server.front.engine.not_ready() is None)
        again = await asyncio.gather(*(say(socket, "And now this.") for socket in sockets))
        assert {messages[-1]["reason"] for messages in again} == {"complete"}
        assert server.front.engine.open_utterances == 0


async def test_two_engines_speak_the_turns_of_one_server() -> None:
    two = serving(engines=2, slots=1, max_queue=0, utilisation=9.0)
    async with two as (server, _):
        assert server.front.engine.info.slots == 2
        async with contextlib.AsyncExitStack() as stack:
            sockets = await connected(server, stack, 3)
            text = "One, two, three, four, five."
            ends = await asyncio.gather(*(say(socket, text) for socket in sockets))
        reasons = sorted(messages[-1]["reason"] for messages in ends)
        assert reasons == ["complete", "complete", "error"]


async def test_instructions_that_are_no_unicode_reach_the_engine() -> None:
    """Half an emoji, as JavaScript cuts strings: it must not cost the commands it travels with."""
    async with serving() as (server, _), websockets.connect(server.websocket_url) as socket:
        start = {"type": "session.start", "instructions": "Warmly \ud83d\ud83d\ude00"}
        await socket.send(json.dumps(start))
        async with asyncio.timeout(SECONDS):
            messages = await say(socket, "One, two.")
        assert messages[-1]["reason"] == "complete"
        ready = [message for message in messages if message["type"] == "ready"]
        assert ready[-1]["settings"]["instructions"] == "Warmly \ufffd\U0001f600"


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
async def test_the_command_stops_its_engines_after_the_last_turn(signal_name: str) -> None:
    async with serving_beside("--engine", "fake", "--devices", "cpu,cpu") as server:
        process = server.process
        engines = psutil.Process(process.pid).children()
        assert len(engines) == 2
        async with websockets.connect(server.websocket_url) as socket:
            (turn,) = await speaking([socket], "One, two, three, four, five, six, seven.")
            begun = time.monotonic()
            process.send_signal(getattr(signal, signal_name))
            for engine in engines:  # as a terminal or a supervisor does, to the whole group
                engine.send_signal(getattr(signal, signal_name))
            assert (await turn)[-1]["reason"] == "complete"
        assert await asyncio.to_thread(process.wait, 30) == 0
        assert time.monotonic() - begun < 30
        assert not any(engine.is_running() for engine in engines)
        events = [line["event"] for line in server.records()]
        assert "engine.died" not in events and events[-1] == "server.stopped"


def test_an_engine_that_cannot_load_ends_the_command_with_one_line(tmp_path: Path) -> None:
    command = serve_command("--engine", "process", "--model", str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"{tmp_path / 'config.json'} is missing" in done.stderr
    assert "Traceback" not in done.stderr
