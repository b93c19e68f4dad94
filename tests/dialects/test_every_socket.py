"""What the sockets of all APIs do alike: deltas, silence, garbage, refusals, hang-ups, ends."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from tests.dialects import cartesian, elevens, plain, qwen_realtime
from tests.dialects.asking import SLOW
from tests.dialects.deepgrams import aura, flux
from tests.dialects.omni import STREAM, omni
from tests.dialects.tones import FRAME, TENTH
from tests.server.speaking import speaking
from tests.server.talking import denied, sound_of

LONG = "A long text. " * 20


@dataclass(frozen=True)
class Way:
    """A way in. `say` sends text that goes on, `end` ends it; `sound` and `done` are what the first
    sound and the answer to the end are known by, `full` the API's word for too many clients."""

    name: str
    connect: Callable[[Any], Any]
    say: Callable[[Any, str], Awaitable[Any]]
    end: Callable[[Any], Awaitable[Any]]
    sound: str
    done: str
    full: str
    sound_of: Callable[[list[Any]], bytes] = sound_of


def one_text(server: Any) -> Any:
    return elevens.eleven(server, multi=False)


@contextlib.asynccontextmanager
async def streamed(server: Any) -> AsyncIterator[Any]:
    async with omni(server) as client:
        await client.config(**STREAM)
        yield client


async def close_context(client: Any) -> None:
    await client.send(context_id="a", flush=True)
    await client.send(context_id="a", close_context=True)


WAYS = [
    Way(
        "plain",
        plain.plain,
        lambda client, text: client.send(text=text),
        lambda client: client.send(end=True),
        "sound",
        "done",
        "too_many_sessions",
        plain.sound_of,
    ),
    Way(
        "cartesia",
        cartesian.cartesian,
        lambda client, text: client.say(text, continue_=True),
        lambda client: client.say("", continue_=False),
        "chunk",
        "done",
        "concurrency_limited",
        cartesian.sound_of,
    ),
    Way(
        "dashscope",
        qwen_realtime.qwen_realtime,
        lambda client, text: client.append(text),
        lambda client: client.commit(),
        "response.audio.delta",
        "response.done",
        "ServiceUnavailable",
        qwen_realtime.sound_of,
    ),
    Way(
        "elevenlabs-contexts",
        elevens.eleven,
        lambda client, text: client.send(text=text, context_id="a"),
        close_context,
        "audio",
        "isFinal",
        "too_many_concurrent_requests",
        elevens.sound_of,
    ),
    Way(
        "vllm-omni",
        streamed,
        lambda client, text: client.text(text),
        lambda client: client.done(),
        "audio.start",
        "session.done",
        "too_many_sessions",
    ),
]
OF_ONE_MISTAKE = [
    Way(
        "elevenlabs",
        one_text,
        lambda client, text: client.send(text=text),
        lambda client: client.send(text=""),
        "audio",
        "isFinal",
        "too_many_concurrent_requests",
        elevens.sound_of,
    ),
    *(
        Way(
            name,
            connect,
            lambda client, text: client.say(text, flush=False),
            lambda client: client.send("Flush"),
            "sound",
            "Flushed",
            "TOO_MANY_REQUESTS",
        )
        for name, connect in (("deepgram", aura), ("deepgram-flux", flux))
    ),
]
"""Those that a message which cannot be taken ends."""
every_way = pytest.mark.parametrize("way", [*WAYS, *OF_ONE_MISTAKE], ids=lambda way: way.name)


@every_way
async def test_deltas_that_cut_words_are_spoken_as_they_come(way: Way) -> None:
    text = "Hello world, how are you?"
    async with speaking() as server, way.connect(server) as client:
        commands = server.spy_on_commands()
        for delta in ("Hel", "lo", " wor", "ld, how"):
            await way.say(client, delta)
        seen = await client.until(way.sound)
        await way.say(client, " are you?")
        await way.end(client)
        seen += await client.until(way.done)
        assert len(way.sound_of(seen)) == len(text) * FRAME
        ids = [id for command in commands for id in getattr(command, "ids", ())]
        assert len(ids) == len(text)
        await server.settled_engine()


@every_way
@pytest.mark.parametrize("text", ["…", "… ", "🙂", "**  **", "-", "- "])
async def test_nothing_to_speak_is_a_little_silence(way: Way, text: str) -> None:
    async with speaking() as server, way.connect(server) as client:
        await way.say(client, text)
        await way.end(client)
        assert way.sound_of(await client.until(way.done)) == TENTH


GARBAGE = [
    "",
    "{",
    "}{",
    "[]",
    "7",
    "null",
    '"text"',
    b"\x00\x01",
    b"\xff\xfe",
    '{"text": 7',
    '{"a": NaN}',
    '{"text": 1e999}',
    "{" * 5_000,
    "[" * 9_999,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
@pytest.mark.parametrize("raw", GARBAGE)
async def test_garbage_is_answered_and_disturbs_nobody(way: Way, raw: str | bytes) -> None:
    async with speaking() as server, way.connect(server) as client:
        await way.say(client, "Hello ")
        await client.socket.send(raw)
        await client.until("error")
        await way.say(client, "there.")
        await way.end(client)
        await client.until(way.done)


@every_way
async def test_a_huge_message_closes_its_socket_alone(way: Way) -> None:
    async with speaking() as server, way.connect(server) as other:
        await way.say(other, "Hello ")
        async with way.connect(server) as client:
            await way.say(client, "a" * 3_000_000)
            await client.rest()
            assert client.socket.close_code == 1009
        await way.say(other, "there.")
        await way.end(other)
        assert len(way.sound_of(await other.until(way.done))) == len("Hello there.") * FRAME


@every_way
async def test_no_place_is_503(way: Way) -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=1))
    async with speaking(config) as server, way.connect(server) as client:
        await way.say(client, "Hello ")
        response = await denied(way.connect(server))
        assert response.status_code == 503 and int(response.headers["retry-after"]) >= 1
        assert f'"{way.full}"'.encode() in response.body
        await way.say(client, "there.")
        await way.end(client)
        await client.until(way.done)


@every_way
@pytest.mark.parametrize("politely", [True, False])
async def test_hanging_up_in_the_middle_frees_all(way: Way, politely: bool) -> None:
    async with speaking(engine=SLOW) as server:
        async with way.connect(server) as client:
            await way.say(client, LONG)
            await client.until(way.sound)
            if not politely:
                client.socket.transport.abort()
        await server.settled()
        assert server.value("tts_turns_total", reason="closed") == 1


@pytest.mark.parametrize(
    ("connect", "say", "sound"),
    [
        (plain.plain, lambda client, id: client.send(id=id, text=LONG), "sound"),
        (cartesian.cartesian, lambda client, id: client.say(LONG, id, continue_=False), "chunk"),
        (elevens.eleven, lambda client, id: client.send(text=LONG, context_id=id), "audio"),
    ],
    ids=["plain", "cartesia", "elevenlabs-contexts"],
)
async def test_hanging_up_frees_all_contexts_of_a_socket(
    connect: Callable[[Any], Any], say: Callable[[Any, str], Awaitable[Any]], sound: str
) -> None:
    async with speaking(engine=SLOW) as server:
        async with connect(server) as client:
            for id in "abcdef":
                await say(client, id)
            await client.until(sound, "f")
            client.socket.transport.abort()
        await server.settled()
        assert server.value("tts_turns_total", reason="closed") == 6


@every_way
async def test_the_server_s_end_is_told(way: Way) -> None:
    async with speaking(engine=SLOW) as server:
        async with way.connect(server) as client, way.connect(server) as idle:
            await way.say(client, LONG)
            await client.until(way.sound)
            server.running.front.end_sessions()
            told = [message for message in await client.rest() if isinstance(message, dict)]
            assert "going_away" in json.dumps(told), told[-1]
            assert client.socket.close_code == 1001
            assert await idle.rest() == [] and idle.socket.close_code == 1001
        await server.settled()
