"""The outbox: in order, bounded, and a turn can be taken out of it."""

from __future__ import annotations

import asyncio

import pytest

from realtime_tts.server.outbox import (
    CloseItem,
    Outbox,
    OutboxFullError,
    Packet,
    TextItem,
    TurnOver,
)

Item = TextItem | Packet[str] | TurnOver[str] | CloseItem


async def test_items_come_out_in_order() -> None:
    outbox: Outbox[str] = Outbox(1_000)
    items: list[Item] = [
        TextItem("a"),
        Packet("t", b"12", 1),
        TurnOver("t"),
        CloseItem(1000, "done"),
    ]
    for item in items:
        outbox.put(item)
    assert [await outbox.take() for _ in items] == items


async def test_taking_waits_for_an_item() -> None:
    outbox: Outbox[str] = Outbox(1_000)
    taking = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    assert not taking.done()
    outbox.put(TextItem("late"))
    assert await taking == TextItem("late")


async def test_dropping_a_turn_leaves_the_rest() -> None:
    outbox: Outbox[str] = Outbox(1_000)
    kept: list[Item] = [TextItem("before"), Packet("b", b"bb", 1), TextItem("after")]
    for item in (
        kept[0],
        Packet("a", b"aa", 1),
        kept[1],
        Packet("a", b"aa", 1),
        TurnOver("a"),
        kept[2],
    ):
        outbox.put(item)
    outbox.drop("a")
    assert outbox.waiting_bytes == len("before") + 2 + len("after")
    assert [await outbox.take() for _ in kept] == kept
    assert outbox.waiting_bytes == 0


async def test_more_than_the_limit_is_refused_and_not_added() -> None:
    outbox: Outbox[str] = Outbox(10)
    outbox.put(Packet("a", b"x" * 6, 3))
    with pytest.raises(OutboxFullError):
        outbox.put(Packet("a", b"x" * 6, 3))
    outbox.put(Packet("a", b"x" * 4, 2))
    assert outbox.waiting_bytes == 10
    await outbox.take()
    outbox.put(Packet("a", b"x" * 6, 3))


async def test_audio_counts_as_what_it_would_be_in_the_engines_own_format() -> None:
    outbox: Outbox[str] = Outbox(960)
    outbox.put(Packet("a", b"x" * 160, 480))  # 20 ms of mu-law
    assert outbox.waiting_bytes == 960
    with pytest.raises(OutboxFullError):
        outbox.put(Packet("a", b"x", 1))


async def test_once_shut_nothing_goes_in_and_nothing_comes_out() -> None:
    outbox: Outbox[str] = Outbox(10)
    outbox.put(TextItem("a"))
    outbox.shut()
    outbox.put(TextItem("b" * 100))
    assert outbox.waiting_bytes == 0
    taking = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    assert not taking.done()
    taking.cancel()
