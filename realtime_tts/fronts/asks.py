"""Requests to other processes, whose answers arrive as separate messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Peer = TypeVar("Peer", bound=Hashable)
Answer = TypeVar("Answer")


class Asks(Generic[Peer, Answer]):
    """Matches answers to requests by a number. Used on one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[Peer, asyncio.Future[Answer]]] = {}
        self._asked = 0

    async def ask(
        self, peers: Iterable[Peer], send: Callable[[Peer, int], None], seconds: float
    ) -> tuple[dict[Peer, Answer], list[Peer]]:
        """Ask all peers. Return the answers that arrive within `seconds`, and the peers that have
        neither answered nor ended. `send` is called with each peer and the request's number."""
        self._asked += 1
        number, loop = self._asked, asyncio.get_running_loop()
        waiting = self._waiting[number] = {peer: loop.create_future() for peer in peers}
        try:
            for peer in waiting:
                send(peer, number)
            if waiting:
                await asyncio.wait(waiting.values(), timeout=seconds)
        finally:
            del self._waiting[number]
        live = {peer: answer for peer, answer in waiting.items() if not answer.cancelled()}
        answers = {peer: answer.result() for peer, answer in live.items() if answer.done()}
        return answers, [peer for peer in live if peer not in answers]

    def answered(self, peer: Peer, number: int, answer: Answer) -> None:
        """Take an answer to request `number`. One that comes too late is ignored."""
        waiting = self._waiting.get(number, {}).get(peer)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def ended(self, peer: Peer) -> None:
        """Stop waiting for the answers of a peer that has ended."""
        for waiting in self._waiting.values():
            if peer in waiting:
                waiting[peer].cancel()
