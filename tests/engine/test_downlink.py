"""The engine's loop reads what its fronts write, between two steps and while it waits."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from realtime_tts.engine import wire
from realtime_tts.engine.downlink import Downlink
from realtime_tts.engine.link import Cancel, Command

Ends = tuple[zmq.Socket[bytes], Downlink, list[wire.Down]]


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    """A front's socket, the engine's end of it, and the messages that were heard there."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    heard: list[wire.Down] = []

    def hear(message: wire.Down) -> list[Command]:
        heard.append(message)
        return message.commands if isinstance(message, wire.Commands) else []

    with context.socket(zmq.PULL) as engine, context.socket(zmq.PUSH) as front:
        engine.bind(f"ipc://{tmp_path}/down")
        front.connect(f"ipc://{tmp_path}/down")
        yield front, Downlink(engine, hear), heard
    context.destroy(linger=0)


def test_what_comes_is_given_in_its_order_and_then_the_queue_is_empty(ends: Ends) -> None:
    front, downlink, heard = ends
    first, second = wire.Commands([Cancel("a"), Cancel("b")]), wire.Commands([Cancel("c")])
    for message in (first, wire.Hello(3), second):
        front.send(wire.encode(message))
    given = [downlink.get(timeout=5.0), downlink.get(timeout=5.0), downlink.get(timeout=5.0)]
    assert given == [first.commands, [], second.commands]
    assert heard == [first, wire.Hello(3), second]
    with pytest.raises(queue.Empty):
        downlink.get_nowait()


def test_a_wait_ends_with_its_time_and_never_lasts_long(ends: Ends) -> None:
    """A stop comes from another thread, and cannot wake it."""
    _, downlink, _ = ends
    for timeout, least, most in ((0.0004, 0.0, 0.05), (0.02, 0.015, 0.09), (60.0, 0.09, 5.0)):
        begun = time.monotonic()
        with pytest.raises(queue.Empty):
            downlink.get(timeout=timeout)
        assert least <= time.monotonic() - begun < most
    downlink.put(())
