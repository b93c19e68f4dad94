"""What the tests of our service share: a server whose speech is tones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.serving import Server, serving


@pytest.fixture(scope="session")
def fake() -> Iterator[Server]:
    with serving("--engine", "fake") as server:
        yield server
