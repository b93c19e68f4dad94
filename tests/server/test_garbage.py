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

from tests.server.conftest import Speaking
from tests.server.opening import open_speech

OF_A_TURN = (
    "realtime_tts.text",
    "realtime_tts.audio",
    "realtime_tts.server.speech",
    "realtime_tts.server.utterances",
    "realtime_tts.server.track",
    "realtime_tts.server.connection",
)
"""Modules of what a turn is made of."""


@pytest.fixture
def garbage() -> Iterator[Any]:
    """Counts what of these modules only a collection finds, by type, since it was last asked."""

    def found(*of: str) -> Counter[str]:
        gc.collect()
        types = [type(thing) for thing in gc.garbage]
        gc.garbage.clear()
        return Counter(kind.__qualname__ for kind in types if kind.__module__.startswith(of))

    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield found
    gc.set_debug(0)
    gc.enable()
    gc.garbage.clear()


@pytest.mark.parametrize("interrupted", [False, True], ids=["spoken", "interrupted"])
async def test_a_turn_leaves_no_cycles_behind(
    speech: Speaking, garbage: Any, interrupted: bool
) -> None:
    async with speech() as server, server.talk() as talker:
        for turn in range(8):
            if turn == 5:  # the session remembers four turns that are over
                garbage()
            turn_id = f"turn-{turn}"
            await talker.send("text", text="Hello there.", turn_id=turn_id, end=True)
            if interrupted:
                await talker.until("turn.started")
                await talker.send("interrupt", turn_id=turn_id)
                await talker.until("turn.done")
            else:
                await talker.until("turn.done")
        assert not garbage(*OF_A_TURN)


@pytest.mark.parametrize("ending", ["closed", "cut off", "in the middle of a turn"])
async def test_a_socket_leaves_no_cycles_behind(
    speech: Speaking, garbage: Any, ending: str
) -> None:
    """Of the server's own objects; asyncio's transport has one."""
    async with speech() as server:
        for _ in range(3):
            async with server.talk() as talker:
                await talker.send("text", text="Hello there.", end=True)
                await talker.until("turn.started" if "middle" in ending else "turn.done")
                if ending == "cut off":
                    talker.socket.transport.abort()
            await server.settled()
            await asyncio.sleep(0.05)
            assert not garbage("realtime_tts")


@pytest.mark.parametrize("cut", [False, True], ids=["spoken", "closed early"])
async def test_a_speech_of_another_api_is_gone_when_nobody_has_it(
    speech: Speaking, garbage: Any, cut: bool
) -> None:
    async with speech() as server:
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
