"""The writer: messages in order and bounded, one sender; sources are asked in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from realtime_tts.server.guarded import FLUSH_EXTENSION
from realtime_tts.server.websocket import MORE_EXTENSION
from realtime_tts.server.writer import Writer, WriterFull


class Socket:
    """Takes frames; while not `free`, it waits with the next."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.together: list[list[Any]] = []  # those that left at once
        self.scope = {"extensions": {FLUSH_EXTENSION: self.flush}}
        self._held: list[Any] = []
        self.free = asyncio.Event()
        self.free.set()

    async def send(self, message: dict[str, Any]) -> None:
        await self.free.wait()
        self.frames.append(message.get("text", message.get("bytes")))
        self._held.append(self.frames[-1])
        if MORE_EXTENSION not in message:
            self.flush()

    def flush(self) -> None:
        if self._held:
            self.together.append(self._held)
            self._held = []

    async def close(self, code: int, reason: str) -> None:
        self.frames.append((code, reason))


class Source:
    """Gives these frames, and notes what the socket had before each."""

    def __init__(self, socket: Socket, frames: Iterable[Any]) -> None:
        self.seen: list[list[Any]] = []
        self._socket = socket
        self._frames = iter(frames)

    def next_frame(self) -> Any:
        self.seen.append(list(self._socket.frames))
        return next(self._frames, None)


def writer(max_bytes: int = 1_000) -> tuple[Writer, Socket]:
    socket: Any = Socket()
    return Writer(socket, max_bytes), socket


async def sent_by(one: Writer) -> None:
    """Send everything that waits, and close."""
    one.close(1000, "done")
    await one.run()


async def running(one: Writer) -> asyncio.Task[None]:
    """Its task, after it has sent what there was."""
    task = asyncio.create_task(one.run())
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_frames_leave_in_order_and_nothing_follows_the_close() -> None:
    one, socket = writer()
    one.put("a")
    one.put(b"12")
    one.close(1001, "bye")
    one.put("late")
    one.close(1000, "again")
    await one.run()
    assert socket.frames == ["a", b"12", (1001, "bye")]


async def test_it_waits_for_frames() -> None:
    one, socket = writer()
    task = await running(one)
    one.put("late")
    await asyncio.sleep(0)
    assert socket.frames == ["late"]
    task.cancel()


async def test_more_than_the_limit_is_refused_and_not_added() -> None:
    one, socket = writer(10)
    one.put(b"x" * 6)
    with pytest.raises(WriterFull, match="6 bytes wait"):
        one.put(b"x" * 6)
    one.put(b"y" * 4)
    await sent_by(one)
    assert [len(frame) for frame in socket.frames] == [6, 4, 2]


async def test_a_source_is_asked_when_the_socket_has_its_frame_and_again_when_it_is_woken() -> None:
    one, socket = writer()
    source = Source(socket, ["a", "b", None, "c"])
    one.wake(source)
    task = await running(one)
    assert source.seen == [[], ["a"], ["a", "b"]]
    one.wake(source)
    await asyncio.sleep(0)
    assert socket.frames == ["a", "b", "c"]
    task.cancel()


async def test_sources_take_turns_and_messages_go_before_them() -> None:
    one, socket = writer()
    one.wake(Source(socket, ["a0", "a1", "a2"]))
    one.wake(Source(socket, ["b0", "b1"]))
    one.put("message")
    task = await running(one)
    assert socket.frames == ["message", "a0", "b0", "a1", "b1", "a2"]
    task.cancel()


async def test_a_message_leaves_together_with_the_frame_behind_it_and_never_stays() -> None:
    one, socket = writer()
    one.wake(Source(socket, ["a0", "a1"]))
    one.put("first")
    one.put("second")
    task = await running(one)
    one.put("alone")
    await asyncio.sleep(0)
    assert socket.frames == ["first", "second", "a0", "a1", "alone"]
    assert socket.together == [["first", "second", "a0", "a1"], ["alone"]]
    task.cancel()


async def test_no_more_than_16_kb_leave_together() -> None:
    one, socket = writer()
    one.wake(Source(socket, [b"x" * 4_096] * 9))
    task = await running(one)
    assert [len(frames) for frames in socket.together] == [4, 4, 1]
    task.cancel()


async def test_what_was_given_leaves_though_the_next_source_fails() -> None:
    one, socket = writer()

    class Failing(Source):
        def next_frame(self) -> Any:
            raise ValueError("no frame")

    one.wake(Source(socket, ["a"]))
    one.wake(Failing(socket, []))
    with pytest.raises(ValueError, match="no frame"):
        await one.run()
    assert socket.together == [["a"]]


async def test_what_a_source_says_while_it_gives_a_frame_goes_before_the_frame() -> None:
    one, socket = writer()

    class Saying(Source):
        def next_frame(self) -> Any:
            frame = super().next_frame()
            if frame is not None:
                one.put(f"about {frame}")
            return frame

    one.wake(Saying(socket, ["a", "b"]))
    task = await running(one)
    assert socket.frames == ["about a", "a", "about b", "b"]
    task.cancel()


async def test_nothing_of_a_dropped_source_follows() -> None:
    one, socket = writer()
    lost, kept = Source(socket, ["lost"] * 5), Source(socket, ["kept"] * 2)
    socket.free.clear()
    one.wake(lost)
    one.wake(kept)
    task = await running(one)  # with the first frame in hand
    one.drop(lost)
    socket.free.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert socket.frames == ["lost", "kept", "kept"]
    task.cancel()


async def test_what_a_source_raises_ends_the_run_which_can_go_on() -> None:
    one, socket = writer()

    class Faulty(Source):
        def next_frame(self) -> Any:
            raise ValueError("a fault")

    one.wake(Faulty(socket, []))
    with pytest.raises(ValueError, match="a fault"):
        await one.run()
    one.put("after")
    await sent_by(one)
    assert socket.frames == ["after", (1000, "done")]


async def test_a_source_with_much_to_say_lets_others_run_in_between() -> None:
    one, socket = writer()
    source = Source(socket, [b"frame"] * 20_000)
    one.wake(source)
    task = asyncio.create_task(one.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < len(socket.frames) < 20_000
    task.cancel()


async def test_once_shut_nothing_goes_in_and_nothing_comes_out() -> None:
    one, socket = writer(10)
    one.put("a")
    one.shut()
    one.put("b" * 100)
    one.wake(Source(socket, ["c"]))
    task = await running(one)
    assert socket.frames == [] and not task.done()
    task.cancel()
