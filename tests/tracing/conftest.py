"""A collector that the servers of a test send to, and what they log."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from realtime_tts.logs import configure_logging
from tests.tracing.collector import Collector, collecting


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as one:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", one.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        yield one


@pytest.fixture
def logged() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The lines of the log so far; call it when all that is looked for has happened."""
    stream, level = io.StringIO(), logging.getLogger().level
    undo = configure_logging("json", stream=stream)
    open_still = True

    def lines() -> list[dict[str, Any]]:
        nonlocal open_still
        if open_still:
            undo()
            open_still = False
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    yield lines
    lines()
    logging.getLogger().setLevel(level)
