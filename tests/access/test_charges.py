"""What turns cost their key: once, and nothing for what is refused; over whatever way they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import websockets

from realtime_tts.access.rates import MOST_RESUMES
from realtime_tts.config import LimitsConfig
from realtime_tts.dialects.socket import SingleVoiceSocket, SpeechSocket
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.link import Open, Refused
from realtime_tts.server.writer import FrameSource, Writer
from tests.access.conftest import Keys
from tests.access.test_sockets import say
from tests.server.resuming import Kept, hear, spoken, whole
from tests.server.speaking import speaking
from tests.waiting import SECONDS, until

Bearer = Callable[[str], dict[str, str]]
TEXT = "The tide is coming in. Good morning to you, and to all who are with you!"
OTHER = "Something else that nobody paid for, and it is rather longer than that was."
ON = "?resume=on&voice=alto&lead_ms=30000"
MOST = {"turns_per_minute": 100, "chars_per_minute": 9_000, "chars_per_day": 10_000}


class Customer:
    """A key, and what it has used."""

    def __init__(self, server: Any, shown: dict[str, str]) -> None:
        self.server, self.shown = server, shown
        self.talk = partial(server.talk, ON, additional_headers=shown)

    async def usage(self) -> tuple[int, int]:
        """Turns and characters that are in the record."""
        await self.server.settled()
        usage = self.server.running.front.access.usage
        rows = await asyncio.to_thread(usage.days, None, 1)
        found = rows[0] if rows else {"turns": 0, "characters": 0}
        return found["turns"], found["characters"]

    def windows(self) -> tuple[int, int]:
        """The same as the windows have it."""
        counters = self.server.running.front.access.rates.counters.counters
        found = dict.fromkeys(MOST, 0)
        for name, counter in counters.items():
            for limit in found:
                found[limit] += counter.count if f"/{limit}/" in name else 0
        turns, a_minute, a_day = (found[limit] for limit in MOST)
        assert a_minute == a_day
        return turns, a_day


@pytest.fixture
async def customer(keys: Keys, bearer: Bearer) -> AsyncIterator[Customer]:
    shown = bearer(keys.create("acme", limits=MOST))
    async with speaking(keys.server(), engine=FakeEngineConfig(frames_per_token=1)) as server:
        yield Customer(server, shown)


# A turn that goes on on another socket.


@pytest.mark.parametrize(
    ("size", "lost_after"), [(0, []), (0, [1]), (0, [6]), (0, [2, 5, 9]), (7, [12, 20])]
)
async def test_a_turn_that_goes_on_elsewhere_is_charged_once(
    customer: Customer, size: int, lost_after: list[int]
) -> None:
    """All text had come by then: that which comes behind the last packet would be charged again."""
    kept = await spoken(customer.talk, whole(TEXT, size), lost_after)
    assert kept.done is not None and kept.done["text_chars"] == len(TEXT)
    assert await customer.usage() == customer.windows() == (1, len(TEXT))


async def test_of_text_that_comes_later_only_that_is_charged(customer: Customer) -> None:
    kept = await half(customer, TEXT)
    await going_on(customer, kept, TEXT + " And more.")
    assert await customer.usage() == customer.windows() == (1, len(TEXT + " And more."))


async def test_a_turn_that_the_server_ends_and_that_goes_on_is_charged_once(
    customer: Customer,
) -> None:
    kept = Kept("a")
    async with customer.talk() as talker:
        await talker.send("text", turn_id="a", text=TEXT, end=True)
        await hear(talker, kept, 3, leave=False)
        (connection,) = customer.server.running.front._connections
        connection.faulted()
        with suppress(StopAsyncIteration):
            await hear(talker, kept, None)
    kept.messages.clear()
    await going_on(customer, kept, TEXT)
    assert await customer.usage() == customer.windows() == (1, len(TEXT))


async def half(customer: Customer, text: str) -> Kept:
    """A turn whose socket is lost after three packets."""
    kept = Kept("a")
    async with customer.talk() as talker:
        await talker.send("text", turn_id="a", text=text)
        await hear(talker, kept, 3)
    return kept


async def going_on(customer: Customer, kept: Kept, text: str) -> Any:
    """The last message about the turn in another session, which it goes on in with this text."""
    async with customer.talk() as talker:
        for message in kept.resume():
            await talker.socket.send(json.dumps(message))
        await talker.send("text", turn_id="a", text=text, end=True)
        return (await talker.until("turn.done"))[-1]


@pytest.mark.parametrize("cut", [len(TEXT), 40])
async def test_who_goes_on_with_another_text_pays_for_it(customer: Customer, cut: int) -> None:
    """Also for less of it than was paid for, of which nobody can tell what it would have become."""
    kept = await half(customer, TEXT)
    await going_on(customer, kept, OTHER[:cut])
    assert await customer.usage() == customer.windows() == (2, len(TEXT) + cut)


async def test_a_turn_goes_on_for_nothing_only_so_often(customer: Customer) -> None:
    kept = await half(customer, TEXT)
    for _ in range(MOST_RESUMES):
        await going_on(customer, kept, TEXT)
    assert await customer.usage() == customer.windows() == (1, len(TEXT))
    await going_on(customer, kept, TEXT)
    assert await customer.usage() == customer.windows() == (2, 2 * len(TEXT))


async def test_who_claims_to_go_on_with_what_is_of_no_use_pays_for_it(customer: Customer) -> None:
    kept = await half(customer, TEXT)
    kept.state = "AAAA"
    await going_on(customer, kept, TEXT)
    assert await customer.usage() == customer.windows() == (2, 2 * len(TEXT))


async def test_a_resumed_turn_beyond_the_limits_is_refused_if_it_is_another(
    keys: Keys, bearer: Bearer
) -> None:
    shown = bearer(keys.create("acme", limits={"chars_per_day": len(TEXT) + 5}))
    async with speaking(keys.server(), engine=FakeEngineConfig(frames_per_token=1)) as server:
        customer = Customer(server, shown)
        kept = await half(customer, TEXT)
        assert (await going_on(customer, kept, OTHER[: len(TEXT)]))["reason"] == "error"
        assert (await going_on(customer, kept, TEXT + " And"))["reason"] == "complete"


# What is refused.


def make_full(server: Any, account: str) -> None:
    """The engine has just said that it has no room for a turn of this key."""
    refusal = Refused("one", "overloaded", "all is taken", 60.0, full=True)
    front = server.running.front
    front.engine.refused(front.settings(), refusal, account)


async def test_a_refused_turn_costs_nothing(
    customer: Customer, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with customer.talk() as talker:
        make_full(customer.server, keys.id("acme"))
        await talker.send("text", turn_id="full", text=TEXT, end=True)
        assert (await talker.until("turn.done"))[-1]["reason"] == "error"
        customer.server.running.front.engine._full.clear()
        # The engine itself says so of one that is there already.
        link = customer.server.link
        monkeypatch.setattr(link, "submit", lambda *commands: None)
        await talker.send("text", turn_id="late", text=TEXT, end=True)
        await until(lambda: customer.windows() == (1, len(TEXT)))
        (id,) = customer.server.running.front.engine._handlers
        customer.server.running.front.engine._deliver([Refused(id, "overloaded", "no", 0.1)])
        assert (await talker.until("turn.done"))[-1]["reason"] == "error"
        monkeypatch.undo()
        assert customer.windows() == (0, 0)
        # Those that wait behind one that speaks, and one too many.
        await talker.send("text", turn_id="spoken", text=TEXT)
        for number in range(LimitsConfig().max_queued_turns + 1):
            await talker.send("text", turn_id=f"queued-{number}", text=OTHER)
        await talker.send("interrupt")
        await talker.send("session.close")
        told = [one for one in await talker.rest() if isinstance(one, dict)]
        assert [one["reason"] for one in told if one["type"] == "turn.done"].count("error") == 1
    assert await customer.usage() == customer.windows() == (1, len(TEXT))


@pytest.mark.parametrize("way", ["session", "request", "socket"])
async def test_a_text_that_is_refused_uses_up_no_turn(keys: Keys, bearer: Bearer, way: str) -> None:
    shown = bearer(keys.create("acme", limits={"turns_per_minute": 2, "chars_per_minute": 5}))
    async with speaking(keys.server()) as server:
        for text in ["Too long."] * 3 + ["Hi."]:
            said = await said_by(way, server, text, shown)
            assert ("chars_per_minute" in said) == (text != "Hi."), said
        assert "turns_per_minute" not in said


async def test_a_turn_does_not_stand_in_its_own_way(keys: Keys, bearer: Bearer) -> None:
    """Where a key may have one at once."""
    shown = bearer(keys.create("acme", limits={"turns": 1}))
    async with speaking(keys.server()) as server:
        for way in ("session", "request", "socket") * 2:
            assert "key_limit" not in await said_by(way, server, "Hi.", shown), way
            await server.settled()


async def test_text_beyond_the_limits_is_not_heard_of_by_the_engine(
    keys: Keys, bearer: Bearer
) -> None:
    shown = bearer(keys.create("acme", limits={"chars_per_minute": 5}))
    async with speaking(keys.server()) as server:
        commands = server.spy_on_commands()
        async with server.talk("?voice=alto", additional_headers=shown) as talker:
            await talker.send("text", text=TEXT, end=True)
            assert (await talker.until("turn.done"))[-1]["reason"] == "error"
        assert commands == []


async def said_by(way: str, server: Any, text: str, shown: dict[str, str]) -> str:
    """What the client is told of this text; without an error, nothing."""
    if way == "request":
        answer = await say(server, text, shown)
        return answer.text if answer.status_code != 200 else ""
    if way == "session":
        async with server.talk("?voice=alto", additional_headers=shown) as talker:
            await talker.send("text", text=text, end=True)
            seen = await talker.until("turn.done")
            return json.dumps([one for one in seen if isinstance(one, dict)])
    url = f"ws://127.0.0.1:{server.port}/tts/websocket"
    async with websockets.connect(url, additional_headers=shown) as socket:
        await socket.send(json.dumps({"transcript": text, "context_id": "a", "voice": "alto"}))
        return str(await socket.recv())


async def test_a_context_whose_first_text_is_refused_holds_no_session(
    keys: Keys, bearer: Bearer
) -> None:
    shown = bearer(keys.create("acme", limits={"chars_per_minute": 5}))
    async with speaking(keys.server()) as server:
        for path, message in [
            ("/tts/websocket", {"transcript": "Too long.", "voice": "alto"}),
            ("/v1/text-to-speech/alto/multi-stream-input", {"text": "Too long. "}),
        ]:
            url = f"ws://127.0.0.1:{server.port}{path}"
            async with websockets.connect(url, additional_headers=shown) as socket:
                for name in ("one", "two", "three"):
                    await socket.send(json.dumps({**message, "context_id": name}))
                    said = json.loads(await socket.recv())
                    assert "chars_per_minute" in said["message"]
                    assert said.get("isFinal", True), "nothing follows it"
                (connection,) = server.running.front._connections
                assert isinstance(connection, SpeechSocket)
                assert connection.contexts == {} and connection.sessions == 1


COMMITTED: list[tuple[str, list[dict[str, Any]], str, str, str]] = [
    (
        "/api-ws/v1/realtime",
        [{"type": "session.update", "session": {"mode": "commit"}}],
        "input_text_buffer.append",
        "input_text_buffer.commit",
        "response.done",
    ),
    (
        "/v1/audio/speech/stream",
        [{"type": "session.config", "stream_audio": False, "response_format": "pcm"}],
        "input.text",
        "input.done",
        "audio.done",
    ),
]


@pytest.mark.parametrize(("path", "before", "add", "commit", "done"), COMMITTED)
async def test_text_that_a_key_may_never_have_is_not_in_the_way_of_the_next(
    keys: Keys,
    bearer: Bearer,
    path: str,
    before: list[dict[str, Any]],
    add: str,
    commit: str,
    done: str,
) -> None:
    shown = bearer(keys.create("acme", limits={"chars_per_minute": 10}))
    async with speaking(keys.server()) as server:
        url = f"ws://127.0.0.1:{server.port}{path}"
        async with websockets.connect(url, additional_headers=shown) as socket:
            for message in before:
                await socket.send(json.dumps(message))

            async def told(text: str, until: str) -> str:
                """What comes up to `until`, where `text` is added, and committed."""
                if text:
                    await socket.send(json.dumps({"type": add, "text": text}))
                await socket.send(json.dumps({"type": commit}))
                said = ""
                async with asyncio.timeout(SECONDS):
                    while f'"{until}"' not in said:
                        said += str(await socket.recv())
                return said

            assert "more at once" in await told("Far too long.", "error")
            await told("One two.", done)
            assert "try again in" in await told("Three.", "error")
            (connection,) = server.running.front._connections
            assert isinstance(connection, SingleVoiceSocket)
            assert connection.kept == "Three.", "it can be committed again in a minute"
            assert "more at once" in await told(" And four.", "error")
            assert connection.kept == ""


SOCKETS: list[tuple[str, list[dict[str, Any]]]] = [
    ("/v1/tts?voice=alto", [{"type": "text", "text": TEXT}]),
    ("/tts/websocket", [{"transcript": TEXT, "context_id": "a", "voice": "alto"}]),
    ("/v1/text-to-speech/alto/stream-input", [{"text": " "}, {"text": TEXT}]),
    ("/v1/text-to-speech/alto/multi-stream-input", [{"text": TEXT}]),
    ("/api-ws/v1/realtime", [{"type": "input_text_buffer.append", "text": TEXT}]),
    (
        "/v1/audio/speech/stream",
        [
            {"type": "session.config", "stream_audio": True, "voice": "alto"},
            {"type": "input.text", "text": TEXT},
        ],
    ),
    ("/v1/speak", [{"type": "Speak", "text": TEXT}]),
    ("/v2/speak", [{"type": "Speak", "text": TEXT}]),
]


@pytest.mark.parametrize(("path", "messages"), SOCKETS)
async def test_while_the_engine_is_full_it_hears_nothing_of_a_turn_over_any_socket(
    customer: Customer, keys: Keys, path: str, messages: list[dict[str, Any]]
) -> None:
    server = customer.server
    commands = server.spy_on_commands()
    url = f"ws://127.0.0.1:{server.port}{path}"
    async with websockets.connect(url, additional_headers=customer.shown) as socket:
        if path == "/v1/audio/speech/stream":  # it has a context from the start
            await asyncio.sleep(0.1)
        make_full(server, keys.id("acme"))
        for message in messages:
            await socket.send(json.dumps(message))
        said = ""
        async with asyncio.timeout(SECONDS):
            while "all is taken" not in said:
                said = str(await socket.recv())
    assert not [command for command in commands if isinstance(command, Open)]
    assert await customer.usage() == customer.windows() == (0, 0)


# Text that comes before its client knows that none is taken any more.


@pytest.fixture
def told_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every client hear of its turns a little later."""
    wake = Writer.wake

    def later(writer: Writer, source: FrameSource) -> None:
        asyncio.get_running_loop().call_later(0.1, wake, writer, source)

    monkeypatch.setattr(Writer, "wake", later)


@pytest.mark.usefixtures("told_late")
async def test_text_beyond_a_limit_is_left_to_say(customer: Customer) -> None:
    texts = [TEXT, "word " * 1_800, "And more."]
    async with customer.talk() as talker:
        for text in texts:
            await talker.send("text", text=text)
        await talker.send("interrupt")
        interrupted = (await talker.until("turn.interrupted"))[-1]
    heard = interrupted["text_spoken"] + interrupted["text_remaining"]
    assert heard == "".join(texts)


@pytest.mark.usefixtures("told_late")
async def test_text_after_one_that_was_refused_begins_no_turn(customer: Customer) -> None:
    async with customer.talk() as talker:
        await talker.send("text", text="word " * 1_801)
        await talker.send("text", text="And more.")
        assert (await talker.until("error"))[-1]["code"] == "key_limit_reached"
        await talker.until("turn.done")
    assert await customer.usage() == customer.windows() == (0, 0)
