"""Peers that are closed afterwards, and long texts that are slow to be taken in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime_tts.server.text_input import TextInput
from realtime_tts.server.utterances import Utterances
from tests.server.peers import Connecting, RawPeer
from tests.waiting import SECONDS


@pytest.fixture
async def peer() -> AsyncIterator[Connecting]:
    """Makes RawPeers and closes them afterwards."""
    made: list[RawPeer] = []

    async def connect(port: int, **options: Any) -> RawPeer:
        made.append(await RawPeer.connect(port, **options))
        return made[-1]

    yield connect
    for one in made:
        one.sock.close()


class Slices:
    """The text that turns take in, and in which round of the event loop: a few characters each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[int, str]] = []
        self._round = 0
        take = Utterances.feed

        def feed(utterances: Utterances, text: str, now: float, **options: Any) -> None:
            self.seen.append((self._round, text))
            take(utterances, text, now, **options)

        monkeypatch.setattr(Utterances, "feed", feed)
        monkeypatch.setattr("realtime_tts.server.text_input.SLICE", 5)
        monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 0.0)
        self._count_rounds(monkeypatch)
        self._held = False
        step = TextInput._step

        def step_unless_held(text_input: TextInput) -> bool:
            return True if self._held else step(text_input)

        monkeypatch.setattr(TextInput, "_step", step_unless_held)

    def _count_rounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In each, the event loop looks once at its sockets: counting there keeps no core busy."""
        selector = vars(asyncio.get_running_loop())["_selector"]
        select = selector.select

        def select_counted(timeout: float | None) -> Any:
            self._round += 1
            return select(timeout)

        monkeypatch.setattr(selector, "select", select_counted)

    async def first(self, count: int) -> None:
        """Until so many were taken in: by the rounds of the loop, whatever time they take."""
        async with asyncio.timeout(SECONDS):
            while len(self.seen) < count:  # noqa: ASYNC110
                await asyncio.sleep(0)

    def hold(self) -> None:
        """Take in no more until `go_on`: what comes meanwhile overtakes it, however slow."""
        self._held = True

    def go_on(self) -> None:
        self._held = False

    def joined(self) -> str:
        return "".join(text for _, text in self.seen)

    def largest(self) -> int:
        return max(len(text) for _, text in self.seen)

    def each_in_its_round(self) -> bool:
        """Whether everything else had its turn between any two of them."""
        rounds = [number for number, _ in self.seen]
        return len(set(rounds)) == len(rounds)


@pytest.fixture
async def slices(monkeypatch: pytest.MonkeyPatch) -> Slices:
    """Long texts are those of more than five characters; each round has time for one slice."""
    return Slices(monkeypatch)
