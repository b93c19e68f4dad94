"""A server that is going: who waits for text is told at once, who speaks is waited for."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.dialects.json_socket import JsonSocket
from tests.dialects.asking import SLOW
from tests.dialects.cartesian import RAW, VOICE, cartesian
from tests.dialects.deepgrams import aura, flux
from tests.dialects.elevens import eleven
from tests.dialects.omni import omni
from tests.dialects.plain import plain, sound_of
from tests.dialects.qwen_realtime import qwen_realtime
from tests.server.speaking import speaking
from tests.waiting import until


def stream_input(server: Any) -> Any:
    return eleven(server, multi=False)


@contextlib.asynccontextmanager
async def native(server: Any) -> AsyncIterator[Any]:
    async with server.talk() as talker:
        yield talker


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The messages that sockets of other APIs have dealt with."""
    messages: list[Any] = []
    take = JsonSocket.take_frame

    def noting(socket: JsonSocket, raw: Any) -> None:
        take(socket, raw)
        messages.append(raw)

    monkeypatch.setattr(JsonSocket, "take_frame", noting)
    return messages


EMPTY_TRANSCRIPT = {
    "transcript": "",
    "voice": VOICE,
    "output_format": RAW,
    "context_id": "a",
    "continue": True,
}


@pytest.mark.parametrize(
    ("connect", "message"),
    [
        (native, None),
        (cartesian, None),
        (cartesian, EMPTY_TRANSCRIPT),
        (eleven, None),
        (eleven, {"text": " ", "context_id": "a"}),
        (stream_input, None),
        (stream_input, {"text": " "}),
        (aura, None),
        (aura, {"type": "Flush"}),
        (flux, None),
        (qwen_realtime, None),
        (qwen_realtime, {"type": "session.update", "session": {"mode": "server_commit"}}),
        (omni, None),
        (omni, {"type": "session.config", "stream_audio": True}),
        (plain, None),
        (plain, {"text": ""}),
    ],
)
async def test_who_only_waits_for_text_is_told_at_once(
    taken: list[Any],
    connect: Callable[..., Any],
    message: dict[str, Any] | None,
) -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(turn_idle_ms=3_600_000))
    async with speaking(config) as server, connect(server) as client:
        if message is not None:
            await client.socket.send(json.dumps(message))
            await until(lambda: taken)
        server.running.front.drain()
        async with asyncio.timeout(30):
            await client.rest()
        assert client.socket.close_code == 1001
        await server.settled()


async def test_who_has_not_shown_a_key_is_told_at_once() -> None:
    config = ServerConfig(port=0, api_keys=("a-key-of-the-test",))
    async with speaking(config) as server, eleven(server) as client:
        server.running.front.drain()
        await client.rest()
        assert client.socket.close_code == 1001


async def test_a_context_that_was_begun_is_waited_for_as_long_as_for_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its turn may go on. It ends as ever, and then the socket closes."""
    monkeypatch.setattr("realtime_tts.dialects.context.DRAIN_IDLE_SECONDS", 3_600)
    async with speaking() as server, plain(server) as client:
        await client.send(id="a", text="A part, ", flush=1)
        await client.until("segment")
        server.running.front.drain()
        await client.send(id="a", text="and another.", flush=2)
        assert sound_of(await client.until("segment"))
        monkeypatch.setattr("realtime_tts.dialects.context.DRAIN_IDLE_SECONDS", 0.05)
        await client.send(id="a", text="The last.", flush=3)
        seen = await client.rest()
        assert seen[-1] == {"id": "a", "done": True}
        assert client.socket.close_code == 1001
        await server.settled()


async def test_one_that_has_waited_for_longer_is_ended_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("realtime_tts.dialects.context.DRAIN_IDLE_SECONDS", 0.0)
    async with speaking() as server, eleven(server) as client:
        await client.send(text="Something.", context_id="a", flush=True)
        while not server.value("tts_turns_total", reason="complete"):
            await client.next()
        server.running.front.drain()
        seen = await client.rest()
        assert seen[-1]["isFinal"] and seen[-1]["contextId"] == "a"
        assert client.socket.close_code == 1001
        await server.settled()


async def test_nothing_is_begun_beside_speech_that_is_waited_for(taken: list[Any]) -> None:
    async with speaking(engine=SLOW) as server, plain(server) as client:
        await client.send(id="empty")
        await client.send(id="a", text="A sentence of some length.", end=True)
        await client.until("sound")
        server.running.front.drain()
        await client.send(id="empty", text="Too late.", end=True)
        seen = await client.rest()
        assert [m["error"] for m in seen if "error" in m] == ["going_away"]
        assert {"id": "a", "done": True} in seen
        assert client.socket.close_code == 1001


@pytest.mark.parametrize(
    ("connect", "first", "then", "told"),
    [
        (
            cartesian,
            EMPTY_TRANSCRIPT | {"transcript": "A sentence of some length."},
            EMPTY_TRANSCRIPT | {"transcript": "a" * 20_000},
            "error",
        ),
        (
            eleven,
            {"text": "A sentence of some length.", "context_id": "a"},
            {"text": "a" * 20_000, "context_id": "a"},
            "error",
        ),
        (
            eleven,
            {"text": "A sentence of some length.", "context_id": "a"},
            {"close_context": True, "context_id": "a"},
            "isFinal",
        ),
    ],
)
async def test_an_answer_that_ends_the_last_speech_comes_before_the_close(
    taken: list[Any],
    connect: Callable[..., Any],
    first: dict[str, Any],
    then: dict[str, Any],
    told: str,
) -> None:
    async with speaking(engine=SLOW) as server, connect(server) as client:
        await client.socket.send(json.dumps(first))
        await until(lambda: taken)
        server.running.front.drain()
        await client.socket.send(json.dumps(then))
        seen = await client.rest()
        assert told in seen[-1] or seen[-1].get("type") == told
        assert client.socket.close_code == 1001
        await server.settled()


async def test_a_server_with_sockets_that_wait_does_not_wait_for_its_deadline() -> None:
    """The whole way: the drain that a signal asks for ends as soon as all are told."""
    async with speaking(ServerConfig(port=0, drain_seconds=3_600)) as server:
        async with native(server) as one, eleven(server) as two, aura(server) as three:
            await two.send(text=" ", context_id="a")
            server.running.server.request_drain()
            for client in (one, two, three):
                await client.rest()
                assert client.socket.close_code == 1001
            await until(lambda: server.running.server.should_exit)
