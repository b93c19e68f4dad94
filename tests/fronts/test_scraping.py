"""A scrape of a server with several fronts waits for those that live."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import cast

import pytest

from realtime_tts.fronts import wire
from realtime_tts.fronts.child import FrontChild
from realtime_tts.fronts.merged_metrics import families_of
from realtime_tts.fronts.scraping import Scraping
from realtime_tts.metrics import Metrics
from tests.waiting import until


class Front:
    """A front that does `wanted` when it is asked what it counts."""

    def __init__(self, serial: int, wanted: Callable[[FrontChild, int], None]) -> None:
        self.serial, self._wanted = serial, wanted
        self.pages: list[bytes] = []

    @property
    def child(self) -> FrontChild:
        return cast(FrontChild, self)

    def send(self, message: wire.Down) -> None:
        if isinstance(message, wire.FamiliesWanted):
            self._wanted(self.child, message.ask)
        elif isinstance(message, wire.PageMade):
            self.pages.append(message.page.text)


async def test_a_scrape_does_not_wait_for_a_front_that_ends_meanwhile(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("realtime_tts.fronts.scraping._PATIENCE_SECONDS", 60.0)
    scraping, counted = Scraping(Metrics()), Metrics()
    counted.packets.inc(7)

    def tell(front: FrontChild, ask: int) -> None:
        scraping.reported(front, wire.Families(ask, families_of(counted.registry)))

    live, dead = Front(1, tell), Front(2, lambda front, ask: None)
    begun = time.monotonic()
    scraping.answer(live.child, wire.PageWanted(1, ""), [live.child, dead.child])
    await asyncio.sleep(0)
    scraping.ended(dead.child)
    await until(lambda: live.pages)
    assert time.monotonic() - begun < 30
    assert b"tts_packets_total 7.0" in live.pages[0] and not caplog.records
    await scraping.close()
