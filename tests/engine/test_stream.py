"""Messages between two processes: whole, in order, and nobody waits for who takes none."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from realtime_tts.engine import wire
from realtime_tts.engine.line import Line, Waiting
from realtime_tts.engine.link import Audio
from realtime_tts.engine.stream import Stream

SIZES = (1, 0, 3, 70_000, 5, 3_000_000, 2, 200_000, 1)


Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def little_room(end: socket.socket) -> None:
    """Systems differ in how much waits in the kernel; here it is little."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32_768)


def taken(stream: Stream, until: type[Exception] = BlockingIOError) -> list[bytes]:
    """All that is there now, or that there is until the end (EOFError)."""
    found: list[bytes] = []
    with contextlib.suppress(until):
        while True:
            found += map(bytes, stream.received())
    return found


def test_messages_of_any_size_come_whole_and_in_order(
    ends: Ends,
) -> None:
    sender, receiver = map(Stream, ends)
    little_room(ends[0])
    messages = [bytes([number]) * size for number, size in enumerate(SIZES)]
    left = [sender.send(message) for message in messages]
    assert left == [True] * 3 + [False] * 6, "more than the kernel keeps"
    found = taken(receiver)
    assert found == messages[:3]
    while not sender.flush():
        found += taken(receiver)
    assert found + taken(receiver) == messages


def test_a_message_may_come_byte_by_byte(ends: Ends) -> None:
    receiver, found = Stream(ends[1]), list[bytes]()
    for byte in b"\0\0\0\3abc\0\0\0\0\0\0\0\1d":
        ends[0].send(bytes([byte]))
        found += map(bytes, receiver.received())
    assert found == [b"abc", b"", b"d"]


def test_what_came_before_the_end_is_heard_before_it(
    ends: Ends,
) -> None:
    """Also by who has sent what the other end has not read."""
    one, other = map(Stream, ends)
    other.send(b"never read")
    one.send(b"last words")
    one.close()
    assert taken(other, until=EOFError) == [b"last words"]
    assert other.send(b"for nobody") and other.flush()


def test_what_a_front_does_not_take_at_once_is_sent_as_it_takes_it(
    ends: Ends,
) -> None:
    waiting = Waiting()
    line, front = Line(ends[0], waiting), Stream(ends[1])
    little_room(ends[0])
    events = [wire.Happened([Audio(str(number), bytes(400_000))]) for number in range(8)]
    for event in events:
        line.send(event)  # it does not wait
    ended = threading.Event()

    def send() -> None:
        while not ended.is_set():
            waiting.send(0.02)

    sending = threading.Thread(target=send)
    sending.start()
    try:
        found: list[wire.Up] = []
        while len(found) < len(events):
            with contextlib.suppress(BlockingIOError):
                found += [wire.decode_up(data) for data in front.received()]
        assert found == events
    finally:
        ended.set()
        sending.join()
    line.close()
    line.send(events[0])  # for nobody


def test_who_closes_a_line_sends_what_waits_or_gives_up_in_time(
    ends: Ends,
) -> None:
    line, front = Line(ends[0], Waiting()), Stream(ends[1])
    little_room(ends[0])
    event = wire.Happened([Audio("a", bytes(4_000_000))])
    line.send(event)
    closing = threading.Thread(target=line.close, args=(20.0,))
    closing.start()
    found: list[bytes] = []
    with contextlib.suppress(EOFError):
        while True:
            with contextlib.suppress(BlockingIOError):
                found += map(bytes, front.received())
    closing.join()
    assert [wire.decode_up(data) for data in found] == [event]


def test_who_takes_nothing_holds_up_no_end(ends: Ends) -> None:
    line, front = Line(ends[0], Waiting()), Stream(ends[1])
    little_room(ends[0])
    line.send(wire.Happened([Audio("a", bytes(4_000_000))]))
    line.close(linger=0.05)
    assert taken(front, until=EOFError) == [], "it was given in part"
