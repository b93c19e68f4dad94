"""The kinds of servers that the tests of all clients have in common.

Under `make test-clients` they are lent by run.py, which keeps them for the environments to come;
`pytest` alone starts its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.clients.serving import Server, serving
from tests.serving import START_SECONDS

KEY = "a-key-for-the-tests"
LENDER_VARIABLE = "REALTIME_TTS_LENDER"
"""Where run.py lends servers: http://127.0.0.1:PORT; see lending.py."""


@contextlib.contextmanager
def _busy() -> Iterator[Server]:
    with serving("--max-sessions", "1") as found:
        parts = urlsplit(found.url)
        direct = socket.create_connection((parts.hostname, parts.port), timeout=30)  # no proxy
        address = f"{found.websocket_url}/v1/tts"
        with connect(address, sock=direct, subprotocols=[Subprotocol("realtime-tts.v1")]) as taken:
            taken.recv(timeout=30)  # `ready`: the session is there
            yield found


Kind = Callable[[], AbstractContextManager[Server]]
KINDS: dict[str, Kind] = {
    "open": serving,
    "keyed": partial(serving, api_key=KEY),
    "tls": partial(serving, "--tls-self-signed"),
    "busy": _busy,
}
"""What each is: the fixtures of conftest.py. All speak with the demo voice."""


@contextlib.contextmanager
def lent(kind: str) -> Iterator[Server]:
    """A server of this kind, the lender's or one of its own. AssertionError if there is none."""
    lender = os.environ.get(LENDER_VARIABLE)
    if lender:
        yield _ask(f"{lender}/{kind}")
    else:
        with KINDS[kind]() as own:
            yield own


def _ask(address: str) -> Server:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=2 * START_SECONDS) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as refused:
        raise AssertionError(refused.read().decode()) from None
    ca_file = Path(found["ca_file"]) if found["ca_file"] else None
    return Server(found["url"], found["api_key"], ca_file)
