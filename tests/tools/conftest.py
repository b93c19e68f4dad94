"""Engines that say what is to be judged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unhurried import unhurried


@pytest.fixture(autouse=True)
def _unhurried_engines() -> Iterator[None]:
    """What is said here is judged, and not when. A crowd's engine, with two dozen slots, would
    speak longer to learn how long its steps take than for the test."""
    with unhurried():
        yield
