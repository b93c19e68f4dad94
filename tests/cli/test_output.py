import asyncio
from collections.abc import Iterator

import pytest

from realtime_tts.cli.files import Sink
from realtime_tts.cli.output import Output, SinkMaker
from realtime_tts.cli.playback import PlayerFailed


class FakeSink(Sink):
    """Fails at a chosen packet, or at the end."""

    def __init__(self, name: str, fails_at: int | None = None, played: float | None = 0.0) -> None:
        self.name = name
        self.fails_at = fails_at
        self.played = played
        self.packets: list[bytes] = []
        self.finished = False
        self.stopped = False

    @property
    def played_seconds(self) -> float | None:
        return self.played

    async def write(self, packet: bytes) -> None:
        if self.fails_at == len(self.packets):
            raise PlayerFailed(f"{self.name} broke")
        self.packets.append(packet)

    async def finish(self) -> None:
        if self.fails_at == -1:
            raise PlayerFailed(f"{self.name} broke at the end")
        self.finished = True

    def stop(self) -> None:
        self.stopped = True


def makers(*sinks: FakeSink | PlayerFailed) -> Iterator[SinkMaker]:
    for sink in sinks:

        def make(sink: FakeSink | PlayerFailed = sink) -> FakeSink:
            if isinstance(sink, PlayerFailed):
                raise sink
            return sink

        yield make


async def speak(output: Output, *packets: bytes) -> None:
    for packet in packets:
        await output.write(packet)
    await output.finish()


async def test_the_first_player_that_works_is_used() -> None:
    complaints: list[str] = []
    sink = FakeSink("good")
    output = Output(makers(PlayerFailed("not there"), sink, FakeSink("spare")), complaints.append)
    await speak(output, b"a", b"b")
    assert (sink.packets, sink.finished, output.name) == ([b"a", b"b"], True, "good")
    assert complaints == ["not there"]


@pytest.mark.parametrize("fails_at", [0, 1, 2, -1])
async def test_a_player_that_fails_early_is_replaced_and_nothing_is_lost(fails_at: int) -> None:
    bad, good = FakeSink("bad", fails_at), FakeSink("good")
    complaints: list[str] = []
    output = Output(makers(bad, good), complaints.append)
    await speak(output, b"a", b"b", b"c")
    assert good.packets == [b"a", b"b", b"c"]
    assert good.finished
    assert len(complaints) == 1


async def test_a_player_that_fails_in_the_middle_is_an_error_not_a_repetition() -> None:
    bad, good = FakeSink("bad", fails_at=2, played=5.0), FakeSink("good")
    output = Output(makers(bad, good), lambda why: None)
    with pytest.raises(PlayerFailed, match="bad broke"):
        await speak(output, b"a", b"b", b"c")
    assert good.packets == []


async def test_no_speech_opens_nothing() -> None:
    sink = FakeSink("never")
    output = Output(makers(sink), lambda why: None)
    await speak(output)
    output.stop()
    assert output.name is None
    assert output.played_seconds is None
    assert not sink.finished


async def test_a_packet_that_was_on_its_way_when_it_was_stopped_is_dropped() -> None:
    """Ctrl-C comes between two turns of the event loop, and a packet may be in the second."""
    sink = FakeSink("file")
    output = Output(makers(sink, FakeSink("spare")), lambda why: None)
    await output.write(b"a")
    output.stop()
    await output.write(b"b")
    assert (sink.packets, sink.stopped) == ([b"a"], True)


async def test_a_player_that_starts_while_it_is_stopped_says_nothing() -> None:
    starting, started = asyncio.Event(), asyncio.Event()

    class Slow(FakeSink):
        async def open(self) -> None:
            starting.set()
            await started.wait()

    sink = Slow("slow")
    output = Output(makers(sink), lambda why: None)
    writing = asyncio.create_task(output.write(b"a"))
    await starting.wait()
    output.stop()
    started.set()
    await writing
    assert (sink.packets, sink.stopped) == ([], True)


async def test_when_nothing_works_it_says_so() -> None:
    output = Output(makers(PlayerFailed("x")), lambda why: None)
    with pytest.raises(PlayerFailed, match="no player works"):
        await output.write(b"a")


@pytest.mark.parametrize("played", [None, 5.0])
async def test_speech_that_can_no_longer_be_repeated_is_not_kept(played: float | None) -> None:
    sink = FakeSink("long", played=played)
    output = Output(makers(sink), lambda why: None)
    await speak(output, *[b"packet"] * 1_000)
    assert len(sink.packets) == 1_000
    assert output._packets == []
