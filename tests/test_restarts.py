"""What ends again and again is started again more and more slowly, and what ran for long, soon."""

from __future__ import annotations

import pytest

from realtime_tts.restarts import Restarts


def test_the_delay_doubles_with_each_end_within_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("realtime_tts.restarts.time.monotonic", lambda: now)
    restarts = Restarts(0.25, 3.0, 600.0)
    delays = []
    for now in (100.0, 101.0, 102.0, 103.0, 104.0, 105.0):  # noqa: B007 -- read by the clock
        delays.append(restarts.ended())
    assert delays == [0.25, 0.5, 1.0, 2.0, 3.0, 3.0] and restarts.ends == 6
    now = 704.5
    assert restarts.ended() == 0.5 and restarts.ends == 2
    now = 2_000.0
    assert restarts.ended() == 0.25 and restarts.ends == 1
