"""For tests of the load generator: what describes the machine is looked up once."""

from __future__ import annotations

from functools import cache

import pytest

from realtime_tts.bench.machine import describe_machine

_once = cache(describe_machine)


@pytest.fixture(autouse=True)
def same_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run asks git and nvidia-smi, three processes. Their answers are test_machine.py's."""
    for module in ("run", "feed_run"):
        monkeypatch.setattr(f"realtime_tts.bench.{module}.describe_machine", _once)
