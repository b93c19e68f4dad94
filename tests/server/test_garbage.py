"""What a turn leaves behind goes at once: garbage that only a full collection finds would stop the
front, and so all its listeners, while it is looked through."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dialects.plain import add_route, plain
from tests.server.opening import open_speech
from tests.server.speaking import speaking

OF_A_TURN = (
    "realtime_tts.text",
    "realtime_tts.audio",
    "realtime_tts.server.speech",
    "realtime_tts.server.utterances",
    "realtime_tts.server.track",
    "realtime_tts.server.connection",
    "realtime_tts.dialects.context",
)
"""Modules of what a turn is made of."""


@pytest.fixture
def garbage() -> Iterator[Any]:
    """Counts what of these modules only a collection frees, by type. Objects are counted before and
    after: a cycle through a suspended generator ends when the collector closes that, and what was
    in it is never listed as garbage."""

    def found(*of: str) -> Counter[str]:
        def living() -> Counter[str]:
            kinds = map(type, gc.get_objects())
            # Of some classes of extensions, `__module__` is no text.
            return Counter(k.__qualname__ for k in kinds if str(k.__module__).startswith(of))

        before = living()
        gc.collect()
        return before - living()

    gc.collect()
    gc.disable()
    yield found
    gc.enable()


@pytest.mark.parametrize("interrupted", [False, True], ids=["spoken", "interrupted"])
async def test_a_turn_leaves_no_cycles_behind(garbage: Any, interrupted: bool) -> None:
    async with speaking() as server, server.talk() as talker:
        for turn in range(8):
            if turn == 5:  # the session remembers four turns that are over
                gc.collect()
            turn_id = f"turn-{turn}"
            await talker.send("text", text="Hello there.", turn_id=turn_id, end=True)
            if interrupted:
                await talker.until("turn.started")
                await talker.send("interrupt", turn_id=turn_id)
                await talker.until("turn.done")
            else:
                await talker.until("turn.done")
        await server.settled_engine()  # its thread, too, lets go of the turn
        assert not garbage(*OF_A_TURN)


@pytest.mark.parametrize("ending", ["closed", "cut off", "in the middle of a turn"])
async def test_a_socket_leaves_no_cycles_behind(garbage: Any, ending: str) -> None:
    """Of the server's own objects; asyncio's transport has one."""
    async with speaking() as server:
        gc.collect()  # what an earlier test has left
        for _ in range(3):
            async with server.talk() as talker:
                await talker.send("text", text="Hello there.", end=True)
                await talker.until("turn.started" if "middle" in ending else "turn.done")
                if ending == "cut off":
                    talker.socket.transport.abort()
            await server.settled()
            await asyncio.sleep(0.05)
            assert not garbage("realtime_tts")


@pytest.mark.parametrize("cancelled", [False, True], ids=["spoken", "cancelled"])
async def test_a_context_leaves_no_cycles_behind(garbage: Any, cancelled: bool) -> None:
    async with speaking() as server, plain(server) as client:
        gc.collect()
        for _ in range(3):
            await client.send(text="Hello there. ", end=not cancelled)
            if cancelled:
                await client.until("sound")
                await client.send(cancel=True)
            await client.until("cancelled" if cancelled else "done")
        await server.settled_engine()  # its thread, too, lets go of the turn
        assert not garbage(*OF_A_TURN)


async def test_a_socket_of_another_api_leaves_no_cycles_behind(garbage: Any) -> None:
    async with speaking() as server:
        add_route(server)
        gc.collect()
        for _ in range(3):
            async with plain(server) as client:
                await client.send(text="Hello there. ")
                await client.until("sound")
            await server.settled()
            await asyncio.sleep(0.05)
            assert not garbage("realtime_tts")


@pytest.mark.parametrize("cut", [False, True], ids=["spoken", "closed early"])
async def test_a_speech_of_another_api_is_gone_when_nobody_has_it(garbage: Any, cut: bool) -> None:
    async with speaking() as server:
        one = open_speech(server)
        one.feed("Hello there.")
        if not cut:
            one.end()
            while await one.next() is not None:
                pass
        one.close()
        await server.settled()
        gone = weakref.ref(one)
        del one
        await asyncio.sleep(0)
        assert gone() is None
