"""What a fleet needs is the real HAProxy; without it, nothing here can be said."""

from __future__ import annotations

import pytest

from tests.fleet.running import missing


@pytest.fixture(autouse=True)
def _haproxy() -> None:
    if (why := missing()) is not None:
        pytest.skip(why)
