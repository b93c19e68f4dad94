"""A stand-in for the model that the examples ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.examples.serving import serving


@pytest.fixture
async def stand_in() -> AsyncIterator[Any]:
    """A model that says what it is told to; `stand_in.url`."""
    from stand_in import StandIn

    model = StandIn(pace=400, stall=0.05)
    async with serving(model.app()) as url:
        model.url = f"{url}/v1"  # type: ignore[attr-defined]
        yield model
