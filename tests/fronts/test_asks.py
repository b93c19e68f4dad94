"""Questions are answered by those that live, and nobody waits for those that do not."""

from __future__ import annotations

import asyncio
import time

from realtime_tts.fronts.asks import Asks


async def test_answers_are_told_apart_by_number_and_by_who_gives_them() -> None:
    asks, sent = Asks[str, int](), list[tuple[str, int]]()

    def send(peer: str, number: int) -> None:
        sent.append((peer, number))

    first = asyncio.create_task(asks.ask("ab", send, 5.0))
    second = asyncio.create_task(asks.ask("ab", send, 5.0))
    await asyncio.sleep(0)
    assert len(set(sent)) == 4
    numbers = sorted({number for _, number in sent})
    for peer, number in reversed(sent):
        asks.answered(peer, number, 10 * numbers.index(number) + "ab".index(peer))
    assert await first == ({"a": 0, "b": 1}, [])
    assert await second == ({"a": 10, "b": 11}, [])


async def test_one_that_is_silent_is_named_and_its_late_answer_is_nobody_s() -> None:
    asks, numbers = Asks[str, int](), list[int]()

    def send(peer: str, number: int) -> None:
        numbers.append(number)
        if peer == "quick":
            asks.answered(peer, number, 1)

    assert await asks.ask(["quick", "silent"], send, 0.05) == ({"quick": 1}, ["silent"])
    asks.answered("silent", numbers[0], 2)
    assert await asks.ask([], send, 5.0) == ({}, [])


async def test_nobody_waits_for_one_that_has_ended() -> None:
    asks, begun = Asks[str, int](), time.monotonic()

    def send(peer: str, number: int) -> None:
        asyncio.get_running_loop().call_later(0.02, lambda: asks.ended("dead"))
        asks.answered("live", number, 1)

    assert await asks.ask(["live", "dead"], send, 60.0) == ({"live": 1}, [])
    assert time.monotonic() - begun < 30
