"""The engine's loop reads what its fronts write, between two steps and while it waits."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

import pytest

from realtime_tts.engine import wire
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.downlink import Downlink
from realtime_tts.engine.fake import FakeEngine
from realtime_tts.engine.fronts import Fronts
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.line import Line, Waiting
from realtime_tts.engine.link import Cancel, Open
from realtime_tts.engine.stream import Stream
from tests.waiting import SECONDS

READY = wire.Ready(FakeEngine().info, 16)


class Ends:
    """An engine's downlink, and what connects to it."""

    def __init__(self, addresses: Addresses) -> None:
        self.stops, self.fronts, self._addresses = 0, Fronts(), addresses
        self._listener, waiting = addresses.listen(), Waiting()

        def accept() -> Line:
            return Line(self._listener.accept()[0], waiting)

        self.parent = self.connect()
        self.line = accept()
        self.downlink = Downlink(
            self._listener, self.line, self.fronts, READY, accept=accept, stop=self._stop
        )

    def connect(self) -> Stream:
        return Stream(self._addresses.connect())

    def _stop(self) -> None:
        self.stops += 1

    def close(self) -> None:
        for end in (self.parent, self.line, self._listener):
            end.close()
        self.fronts.close(0.0)
        self._addresses.remove()


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends(Addresses.make())
    yield made
    made.close()


def test_what_comes_is_given_in_its_order_and_then_the_queue_is_empty(ends: Ends) -> None:
    first, second = wire.Commands([Cancel("a"), Cancel("b")]), wire.Commands([Cancel("c")])
    for message in (first, wire.Stop(), second):
        ends.parent.send(wire.encode(message))
    assert ends.downlink.get(timeout=SECONDS) == [*first.commands, *second.commands]
    assert ends.stops == 1
    with pytest.raises(queue.Empty):
        ends.downlink.get_nowait()


def test_a_front_is_greeted_and_heard_and_its_end_cancels_what_it_had_open(ends: Ends) -> None:
    front = ends.connect()
    front.send(wire.encode(wire.Commands([Open("a", UtteranceSpec()), Open("b", UtteranceSpec())])))
    assert ends.downlink.get(timeout=SECONDS) == []  # it has come
    (greeting,) = front.received()
    assert wire.decode_up(greeting) == READY
    opened = [command.id for command in ends.downlink.get(timeout=SECONDS)]
    front.send(wire.encode(wire.Commands([Cancel("a")])))
    front.close()
    assert ends.downlink.get(timeout=SECONDS) == [Cancel(opened[0])]
    assert ends.downlink.get(timeout=SECONDS) == [Cancel(opened[1])]
    with pytest.raises(queue.Empty):
        ends.downlink.get_nowait()


def test_a_wait_ends_with_its_time_and_never_lasts_long(ends: Ends) -> None:
    """A stop comes from another thread, and cannot wake it."""
    for timeout, least, most in ((0.0004, 0.0, 0.05), (0.02, 0.015, 0.09), (60.0, 0.09, 5.0)):
        times = []
        for _ in range(10):  # on a busy machine the thread may have to wait, too
            begun = time.monotonic()
            with pytest.raises(queue.Empty):
                ends.downlink.get(timeout=timeout)
            times.append(time.monotonic() - begun)
        assert least <= min(times) < most
    ends.downlink.put(())


def test_an_engine_that_has_ended_cannot_be_connected_to() -> None:
    addresses = Addresses.make()
    addresses.listen().close()
    with pytest.raises(ConnectionRefusedError):
        addresses.connect()
    addresses.remove()
    with pytest.raises(FileNotFoundError):
        addresses.connect()
