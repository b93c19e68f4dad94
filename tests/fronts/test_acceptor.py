"""One process accepts for all: who gets a socket, and what happens where there is nobody."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from realtime_tts.fronts.acceptor import Acceptor, hand_over, received
from realtime_tts.fronts.process import FrontProcess
from tests.waiting import until


class Front:
    """Takes sockets through a Unix socket, as a front in another process does."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.theirs.setblocking(False)
        self.given = 0

    def take(self, accepted: socket.socket) -> bool:
        taken = hand_over(self.ours, accepted)
        self.given += taken
        return taken

    def sockets(self) -> Iterator[socket.socket]:
        while (one := received(self.theirs)) is not None:
            yield one


class Fronts(list[Front]):
    """Those that may be given a socket; counts how often somebody has asked for them."""

    asked = 0

    def takers(self) -> list[Front]:
        self.asked += 1
        return sorted(self, key=lambda front: front.given)


@contextlib.asynccontextmanager
async def accepting(*fronts: Front) -> AsyncIterator[tuple[Fronts, tuple[str, int], Acceptor]]:
    listener = socket.create_server(("127.0.0.1", 0))
    takers = Fronts(fronts)
    acceptor = Acceptor([listener], takers.takers)
    address = listener.getsockname()
    acceptor.start()
    try:
        yield takers, address, acceptor
    finally:
        acceptor.close()
        for front in fronts:
            front.ours.close()
            front.theirs.close()


async def connect(address: tuple[str, int], count: int) -> list[socket.socket]:
    return [await asyncio.to_thread(socket.create_connection, address) for _ in range(count)]


async def test_what_is_handed_over_is_the_clients_connection() -> None:
    front = Front()
    async with accepting(front) as (_, address, _):
        (client,) = await connect(address, 1)
        await until(lambda: front.given)
        (accepted,) = front.sockets()
        with client, accepted:
            assert accepted.getpeername() == client.getsockname()
            assert accepted.proto == socket.IPPROTO_TCP, "or asyncio leaves Nagle's algorithm on"
            await asyncio.to_thread(client.sendall, b"hello")
            await until(lambda: accepted.recv(5, socket.MSG_PEEK) == b"hello")


async def test_connections_wait_while_there_is_nobody_to_take_them() -> None:
    front = Front()
    async with accepting(front) as (takers, address, acceptor):
        takers.clear()
        clients = await connect(address, 3)
        await until(lambda: takers.asked)
        assert front.given == 0
        takers.append(front)
        acceptor.start()
        await until(lambda: front.given == 3)
        for one in (*clients, *front.sockets()):
            one.close()


async def test_the_next_one_gets_what_a_front_that_has_ended_cannot_take() -> None:
    dead, front = Front(), Front()
    dead.theirs.close()
    async with accepting(dead, front) as (_, address, _):
        clients = await connect(address, 5)
        await until(lambda: front.given == 5)
        for one in (*clients, *front.sockets()):
            one.close()


async def test_a_front_that_reads_nothing_is_full_at_some_time_and_blocks_nobody() -> None:
    stuck = Front()
    async with accepting(stuck):
        with socket.socket() as one:
            count = 0
            while stuck.take(one):
                count += 1
                assert count < 100_000
        assert count >= 16


async def test_a_process_without_file_descriptors_accepts_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    front, failed = Front(), 0
    accept = socket.socket.accept

    def accept_or_fail(self: socket.socket) -> tuple[socket.socket, object]:
        nonlocal failed
        if failed == 0:
            failed += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(self)

    async with accepting(front) as (_, address, _):
        monkeypatch.setattr(socket.socket, "accept", accept_or_fail)
        clients = await connect(address, 2)
        await until(lambda: front.given == 2)
        for one in (*clients, *front.sockets()):
            one.close()
    assert [record.message for record in caplog.records] == ["socket.not_accepted"]


def test_the_parents_end_is_told_from_a_socket_that_is_not_there_yet() -> None:
    front = Front()
    assert received(front.theirs) is None
    front.ours.close()
    with pytest.raises(EOFError):
        received(front.theirs)
    front.theirs.close()


def test_a_socket_that_a_front_has_no_file_descriptor_for_is_not_on_its_way_for_ever() -> None:
    channel, accepted = Front(), socket.socket()
    front = FrontProcess.__new__(FrontProcess)
    front._sockets, front._received = channel.theirs, 0
    assert channel.take(accepted)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        front._take()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert front._received == channel.given == 1
    front._take()  # there is no other
    assert front._received == 1
    for one in (accepted, channel.ours, channel.theirs):
        one.close()
