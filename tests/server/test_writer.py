"""The writer: in order, bounded, one sender; what is of an owner can be taken out again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime_tts.server.writer import Writer, WriterFull


class Socket:
    """Takes frames; while `blocked`, it waits with the next."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.free = asyncio.Event()
        self.free.set()

    async def send(self, message: dict[str, Any]) -> None:
        await self.free.wait()
        self.frames.append(message.get("text", message.get("bytes")))

    async def close(self, code: int, reason: str) -> None:
        self.frames.append((code, reason))


def writer(max_bytes: int = 1_000) -> tuple[Writer, Socket]:
    socket: Any = Socket()
    return Writer(socket, max_bytes), socket


async def sent_by(one: Writer) -> None:
    """Send everything that waits, and close."""
    one.close(1000, "done")
    await one.run()


async def test_frames_leave_in_order_and_nothing_follows_the_close() -> None:
    one, socket = writer()
    one.put("a")
    one.put(b"12", "owner")
    one.close(1001, "bye")
    one.put("late")
    one.close(1000, "again")
    await one.run()
    assert socket.frames == ["a", b"12", (1001, "bye")]


async def test_it_waits_for_frames() -> None:
    one, socket = writer()
    running = asyncio.create_task(one.run())
    await asyncio.sleep(0)
    one.put("late")
    await asyncio.sleep(0)
    assert socket.frames == ["late"]
    running.cancel()


async def test_dropping_an_owner_leaves_the_rest() -> None:
    one, socket = writer(10)
    for data, owner in (("before", None), (b"aa", "a"), (b"bb", "b")):
        one.put(data, owner)
    one.drop("a")
    one.put("22", "b")  # there is room for it again
    await sent_by(one)
    assert socket.frames == ["before", b"bb", "22", (1000, "done")]


async def test_more_than_the_limit_is_refused_and_not_added() -> None:
    one, socket = writer(10)
    one.put(b"x" * 6)
    with pytest.raises(WriterFull, match="6 bytes wait"):
        one.put(b"x" * 6)
    one.put(b"y" * 4)
    await sent_by(one)
    assert [len(frame) for frame in socket.frames] == [6, 4, 2]


async def test_a_frame_may_count_for_more_than_it_has() -> None:
    """Audio of any format counts as what it would be in the engine's own."""
    one, _ = writer(960)
    one.put(b"x" * 160, "a", size=960)  # 20 ms of mu-law
    with pytest.raises(WriterFull):
        one.put(b"x", "a", size=2)


async def test_who_put_a_frame_hears_when_it_is_taken_and_sent_and_may_add_to_it() -> None:
    one, socket = writer()
    seen: list[Any] = []

    def sent() -> list[str]:
        seen.append(list(socket.frames))
        return ["words", "more words"]

    one.put("sound", taken=lambda: seen.append(list(socket.frames)), sent=sent)
    one.put(None, sent=lambda: ["marker"])
    one.put("next")
    await sent_by(one)
    assert seen == [[], ["sound"]]
    assert socket.frames == ["sound", "words", "more words", "marker", "next", (1000, "done")]


async def test_owners_who_wait_for_each_frame_take_turns() -> None:
    one, socket = writer()

    async def owner(name: str, frames: int) -> None:
        for number in range(frames):
            await one.send(f"{name}{number}", name)

    running = asyncio.create_task(one.run())
    await asyncio.gather(owner("a", 3), owner("b", 3))
    assert socket.frames == ["a0", "b0", "a1", "b1", "a2", "b2"]
    running.cancel()


async def test_once_shut_nothing_goes_in_and_nothing_comes_out() -> None:
    one, socket = writer(10)
    one.put("a")
    one.shut()
    one.put("b" * 100)
    running = asyncio.create_task(one.run())
    await asyncio.sleep(0)
    assert socket.frames == [] and not running.done()
    running.cancel()
