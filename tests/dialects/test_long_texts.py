"""Long texts over the other APIs: taken in bit by bit, in order, each client's before its next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime_tts.text.pipeline import TextPipeline
from tests.dialects.asking import speech_of
from tests.dialects.plain import plain, sound_of
from tests.dialects.tones import FRAME
from tests.server.speaking import speaking

LONG = "Quite some words. "


async def test_a_sockets_text_is_taken_in_between_the_packets_of_others(slices: Any) -> None:
    async with speaking() as server, plain(server) as client, plain(server) as other:
        await client.send(text=LONG, flush=1)
        await client.send(text="After it.", end=True)
        await other.send(text="Hello there.", end=True)
        assert len(sound_of(await other.until("done"))) == len("Hello there.") * FRAME
        seen = await client.until("done")
        assert len(sound_of(seen)) == len(LONG + "After it.") * FRAME
        assert [message["segment"] for message in seen if "segment" in message] == [0, 1]
        assert slices.largest() == 5 and slices.each_in_its_round()
        await server.settled_engine()


async def test_the_other_contexts_of_a_socket_are_spoken_while_a_long_text_is_taken_in(
    slices: Any,
) -> None:
    """One text of many slices: messages behind it are heard, and others' text is not behind it."""
    async with speaking() as server, plain(server) as client:
        await client.send(id="long", text=LONG * 100)
        await client.send(id="short", text="Hello there.", end=True)
        seen = await client.until("done", "short")
        assert len(sound_of(seen, "short")) == len("Hello there.") * FRAME
        last = next(n for n, (_, text) in enumerate(slices.seen) if text == "e.")
        assert 1 < last < len(LONG) * 100 / 5 / 2, "most of the long text still waited"
        await client.send(id="long", cancel=True)
        await client.until("cancelled", "long")
        assert slices.largest() <= 5 and slices.each_in_its_round()
        await server.settled_engine()


async def test_the_texts_of_a_context_stay_in_their_order_however_long_they_are(
    slices: Any,
) -> None:
    async with speaking() as server, plain(server) as client:
        for text in (LONG, "abc", LONG, ""):
            await client.send(text=text, end=not text)
        await client.until("done")
        assert slices.joined() == LONG + "abc" + LONG
        await server.settled_engine()


async def test_a_text_that_waited_behind_speech_is_taken_in_bit_by_bit(slices: Any) -> None:
    async with speaking() as server, plain(server) as client:
        await client.send(text="First.", flush=1)
        for _ in range(3):
            await client.send(text=LONG)
        await client.send(end=True)
        seen = await client.until("done")
        assert len(sound_of(seen)) == len("First." + (LONG * 3)) * FRAME
        assert slices.largest() == 5 and slices.each_in_its_round()


async def test_who_goes_in_the_middle_leaves_nothing_behind(slices: Any) -> None:
    async with speaking() as server:
        async with plain(server) as client:
            await client.send(text=LONG * 100)
            await slices.first(11)
            server.running.front.end_sessions()
            assert (await client.until("error"))[-1]["error"] == "going_away"
            count = len(slices.seen)
            await asyncio.gather(*(asyncio.sleep(0) for _ in range(20)))
            assert len(slices.seen) == count < len(LONG) * 10
        await server.settled()


async def test_a_bug_in_the_middle_ends_that_one_alone(
    slices: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with speaking() as server, plain(server) as client:
        feed = TextPipeline.feed

        def fails(pipeline: TextPipeline, text: str, now: float) -> Any:
            if "bug" in text:
                raise RuntimeError("on purpose")
            return feed(pipeline, text, now)

        monkeypatch.setattr(TextPipeline, "feed", fails)
        await client.send(id="a", text="12345bug..12345")
        await client.send(id="b", text="Hello there.", end=True)
        done = {"id": "b", "done": True}
        seen = await client.up_to(lambda found: found == done, past_errors=True)
        assert {"id": "a", "error": "internal"} in seen
        assert len(sound_of(seen, "b")) == len("Hello there.") * FRAME
        await server.settled_engine()


async def test_a_requests_text_is_taken_in_bit_by_bit_and_is_whole_to_the_engine(
    slices: Any,
) -> None:
    async with speaking() as server:
        commands = server.spy_on_commands()
        answer = await speech_of(server, LONG, response_format="pcm")
        assert len(answer.content) == len(LONG) * FRAME
        assert slices.joined() == LONG
        assert slices.largest() == 5 and slices.each_in_its_round()
        names = [type(command).__name__ for command in commands]
        assert names[:3] == ["Open", "Append", "Finish"]
