"""Engines that are not warmed up."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _cold_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said here is judged, and not when: no engine has to know how long its steps take, and
    those of a crowd, with two dozen slots, would speak longer to learn it than for the test."""
    monkeypatch.setattr("realtime_tts.engine.torch_engine.warm_up", lambda *_, **__: [])
