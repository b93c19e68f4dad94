"""Servers for the tests of real clients; each is started when the first test asks for it.

All speak with the demo voice (`ava`, `kal`, `ray`) and are shared by the tests of one client. What
`Server` has is in serving.py; a test that needs other flags uses `serving` itself.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from serving import Server, serving
from websockets.sync.client import connect

pytest.register_assert_rewrite("pipecat_turns")  # its assertions say what was found, too

KEY = "a-key-for-the-tests"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Open to everybody."""
    with serving() as found:
        yield found


@pytest.fixture(scope="session")
def server_url(server: Server) -> str:
    """http://127.0.0.1:PORT of `server`."""
    return server.url


@pytest.fixture(scope="session")
def keyed_server() -> Iterator[Server]:
    """Lets in whoever has its `api_key`."""
    with serving(api_key=KEY) as found:
        yield found


@pytest.fixture(scope="session")
def tls_server() -> Iterator[Server]:
    """Speaks TLS with a certificate of its own, in `ca_file`."""
    with serving("--tls-self-signed") as found:
        assert found.ca_file is not None
        yield found


@pytest.fixture(scope="session")
def busy_server() -> Iterator[Server]:
    """Refuses all speech: its only session is taken for as long as the tests last.

    HTTP gets 429, WebSockets get 503 before the upgrade, both with Retry-After.
    """
    with serving("--max-sessions", "1") as found:
        parts = urlsplit(found.url)
        direct = socket.create_connection((parts.hostname, parts.port), timeout=30)  # no proxy
        address = f"{found.websocket_url}/v1/tts"
        with connect(address, sock=direct, subprotocols=["realtime-tts.v1"]) as taken:
            taken.recv(timeout=30)  # `ready`: the session is there
            yield found
