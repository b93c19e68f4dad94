"""How much the front does for a start, in calls of functions: the same on every machine, however
busy it is. With 64 turns that begin at once, the last of them waits for the work of all."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from starlette.websockets import WebSocket

from realtime_tts import demo_voice
from realtime_tts.config import ServerConfig
from realtime_tts.engine.fake import FakeEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Command,
    EngineStatus,
    Finish,
    Open,
    Refused,
    Started,
    Stranded,
)
from realtime_tts.metrics import Metrics
from realtime_tts.server import time_slices, writer
from realtime_tts.server.connection import Connection
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.front import Front
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.waiting import until

TEXT = (
    "I have moved the meeting to Thursday and told everyone. Anna cannot come, so I asked her to "
    "send her notes the day before."
)
PER_START, PER_FIRST_SOUND, PER_TOKEN, PER_REFUSED = 815, 402, 605, 540
"""With Python 3.11 there are 811, 392, 583 and 524, of which the event loop's own rounds are some
140. A refusal by the engine takes 1,375."""


class Link:
    """Takes commands, and says nothing by itself."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.deliver: Callable[[list[Any]], None] = lambda events: None
        self.info = FakeEngine().info

    def start(self, deliver: Callable[[list[Any]], None]) -> None:
        self.deliver = deliver

    def submit(self, *commands: Command) -> None:
        self.commands += commands

    def info_for(self, spec: Any) -> Any:
        return self.info

    def check(self, spec: Any) -> None:
        """Everything can be spoken."""

    def status(self) -> EngineStatus:
        return EngineStatus(True, 0, 0, 0, 256, 0.0)

    def stranded(self) -> list[Stranded]:
        return []

    async def stop(self) -> None:
        """Nothing runs."""


class Peer:
    """The other end of a connection's socket."""

    front: Front

    def __init__(self) -> None:
        self.said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.heard: list[Any] = []
        self.say({"type": "websocket.connect"})

    def say(self, message: dict[str, Any]) -> None:
        self.said.put_nowait(message)

    def text(self, **fields: Any) -> None:
        self.say({"type": "websocket.receive", "text": json.dumps(fields)})

    async def send(self, message: Any) -> None:
        self.heard.append(message)


async def settled() -> None:
    """What there is to do has been done."""
    for _ in range(5):
        await asyncio.sleep(0)


async def calls(run: Callable[[], Awaitable[None]]) -> int:
    """Of functions, in Python and in C, until `run` has returned."""
    count = 0
    gc.collect()  # what other tests have left calls back when it is collected, and is not counted
    gc.disable()

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        await run()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.fixture(autouse=True)
def one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is to be done is done in one pass of the event loop: where the machine stops the
    process for a millisecond, the rest would come in the next, whose own calls are no work."""
    monkeypatch.setattr(writer, "_WRITING_SECONDS", 60.0)
    monkeypatch.setattr(time_slices, "SLICE_SECONDS", 60.0)


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    yield Link()


@pytest.fixture
async def peer(link: Link, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Peer]:
    """Of a session that has spoken before. Lines of a log are not counted, whatever level the
    tests before have left."""
    caplog.set_level(logging.WARNING)
    metrics, tokenizer = Metrics(), Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
    host = EngineHost(link, lambda: tokenizer, metrics, stall_seconds=60.0)
    await host.start()
    await until(lambda: host.not_ready() is None)
    one = Peer()
    scope = {"type": "websocket", "path": "/", "query_string": b"", "headers": [], "extensions": {}}
    socket = WebSocket(scope, one.said.get, one.send)
    one.front = Front(ServerConfig(), host, metrics)
    task = asyncio.create_task(Connection.serve(one.front, socket))
    await settled()
    for _ in range(2):
        await said_whole(one)
        await first_sound(one, link)
        one.text(type="interrupt")
        await settled()
        link.commands.clear()
        one.heard.clear()
    yield one
    one.say({"type": "websocket.disconnect", "code": 1000})
    await task
    await host.stop()


async def said_whole(peer: Peer) -> None:
    peer.text(type="text", text=TEXT, end=True)
    await settled()


async def first_sound(peer: Peer, link: Link) -> None:
    id = next(command.id for command in link.commands if isinstance(command, Open))
    link.deliver([Started(id, "full_text"), Audio(id, bytes(3_840))])
    await settled()


async def test_a_text_that_comes_whole_is_with_the_engine_after_few_calls(
    peer: Peer, link: Link
) -> None:
    counted = await calls(lambda: said_whole(peer))
    assert [type(command) for command in link.commands] == [Open, Append, Finish]
    assert counted <= PER_START, counted


async def test_a_turn_looks_for_its_registered_voice_once(peer: Peer) -> None:
    asked: list[str] = []

    def find(voice: str) -> None:
        asked.append(voice)  # a look-up asks the file system, perhaps over a network

    peer.front.engine.registered = find
    await said_whole(peer)
    assert asked == ["tenor"]


async def test_the_first_sound_is_with_the_socket_after_few_calls(peer: Peer, link: Link) -> None:
    await said_whole(peer)
    counted = await calls(lambda: first_sound(peer, link))
    assert [kind for message in peer.heard for kind in ("text", "bytes") if kind in message] == [
        "text",
        "bytes",
    ]
    assert counted <= PER_FIRST_SOUND, counted


async def test_a_token_is_with_the_engine_after_few_calls(peer: Peer, link: Link) -> None:
    pieces = [TEXT[at : at + 4] for at in range(0, len(TEXT), 4)]

    async def fed() -> None:
        for piece in pieces:
            peer.text(type="text", text=piece)
            await settled()

    counted = await calls(fed)
    assert sum(len(command.ids) for command in link.commands if isinstance(command, Append)) > 10
    assert counted <= PER_TOKEN * len(pieces), counted


async def refused(peer: Peer, link: Link, *, retry_after: float = 60.0) -> None:
    """A turn that the engine refuses, since it is full."""
    await said_whole(peer)
    (id,) = (command.id for command in link.commands if isinstance(command, Open))
    link.deliver([Refused(id, "overloaded", "all is taken", retry_after, full=True)])
    await settled()
    link.commands.clear()


def answers(peer: Peer) -> list[Any]:
    """Messages of a turn that was refused, since they were looked at last."""
    found = [json.loads(one["text"]) for one in peer.heard]
    peer.heard.clear()
    return found


async def test_while_the_engine_is_full_a_turn_is_refused_after_few_calls_and_without_it(
    peer: Peer, link: Link
) -> None:
    await refused(peer, link)
    first = answers(peer)
    counted = await calls(lambda: said_whole(peer))
    assert link.commands == [], "the engine hears nothing of it"
    error, done = answers(peer)
    assert [one["type"] for one in first] == [error["type"], done["type"]] == ["error", "turn.done"]
    assert error | {"turn_id": "", "retry_after_ms": 0} == first[0] | {
        "turn_id": "",
        "retry_after_ms": 0,
    }
    assert 0 < error["retry_after_ms"] <= first[0]["retry_after_ms"] == 60_000
    assert counted <= PER_REFUSED, counted


async def test_the_engine_is_asked_again_when_a_turn_has_ended_or_the_time_is_over(
    peer: Peer, link: Link
) -> None:
    await refused(peer, link, retry_after=0.05)
    await asyncio.sleep(0.1)
    await refused(peer, link)  # it is asked
    host = peer.front.engine
    host.open(Open("another's", UtteranceSpec()), lambda event: None)
    await said_whole(peer)
    assert [command.id for command in link.commands] == ["another's"], "it is full as before"
    host.cancel("another's")
    link.commands.clear()
    await refused(peer, link)  # it is asked


async def test_what_waits_in_the_queue_for_too_long_does_not_make_the_engine_full(
    peer: Peer, link: Link
) -> None:
    for _ in range(2):
        await said_whole(peer)
        (id,) = (command.id for command in link.commands if isinstance(command, Open))
        link.deliver([Refused(id, "overloaded", "no capacity became free in time", 60.0)])
        await settled()
        link.commands.clear()
