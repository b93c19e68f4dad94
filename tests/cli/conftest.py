"""A server with the fake engine in a process of its own, as a user would start it."""

from collections.abc import Iterator

import pytest

from tests.serving import serving

KEY = "a-key-for-the-tests"


@pytest.fixture(scope="module")
def fake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL. It lets in whoever has KEY."""
    voices = str(tmp_path_factory.mktemp("voices"))
    with serving("--engine", "fake", "--api-key", KEY, "--voices-dir", voices) as server:
        yield f"ws://127.0.0.1:{server.port}"


@pytest.fixture
def key() -> str:
    return KEY
