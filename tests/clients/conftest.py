"""Servers for the tests of real clients; each is started when the first test asks for it.

All speak with the demo voice (`ava`, `ray`) and are shared by the tests of one client, under
`make test-clients` also by one client after another (kinds.py). What `Server` has is in serving.py;
a test that needs other flags, or breaks its server, uses `serving` itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.kinds import lent
from tests.clients.serving import Server

# Their assertions say what was found, too.
pytest.register_assert_rewrite(
    *(f"tests.clients.{name}" for name in ("livekit_rig", "livekit_turns", "pipecat_turns"))
)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Open to everybody."""
    with lent("open") as found:
        yield found


@pytest.fixture(scope="session")
def server_url(server: Server) -> str:
    """http://127.0.0.1:PORT of `server`."""
    return server.url


@pytest.fixture(scope="session")
def keyed_server() -> Iterator[Server]:
    """Lets in whoever has its `api_key`."""
    with lent("keyed") as found:
        yield found


@pytest.fixture(scope="session")
def tls_server() -> Iterator[Server]:
    """Speaks TLS with a certificate of its own, in `ca_file`."""
    with lent("tls") as found:
        assert found.ca_file is not None
        yield found


@pytest.fixture(scope="session")
def busy_server() -> Iterator[Server]:
    """Refuses all speech: its only session is taken for as long as the tests last.

    HTTP gets 503, and WebSockets before the upgrade, both with Retry-After.
    """
    with lent("busy") as found:
        yield found
