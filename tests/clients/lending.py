"""Servers that stand for a whole run of run.py, lent to one environment after another."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.clients.kinds import KINDS, Kind
from tests.clients.serving import Server

AT_REST = ("tts_sessions", "tts_open_turns")
"""Series that have to be what they were at the start once an environment is done."""
SETTLE_SECONDS = 30.0  # what left has to be noticed by then
LOG_CHARS = 4_000  # the end of a broken server's log


class Lender:
    """Lends a server of each kind to one environment at a time; `url` is where they are asked for.

    GET /KIND is a server of that kind as JSON, started when it is first asked for; 500 and the
    reason when it cannot be started, which the next who asks tries again.
    """

    def __init__(
        self, kinds: Mapping[str, Kind] = KINDS, settle_seconds: float = SETTLE_SECONDS
    ) -> None:
        self._kinds, self._settle_seconds = kinds, settle_seconds
        self._standing: dict[str, _Standing] = {}
        self._lock = threading.Lock()
        self._closed = False
        self.url = ""

    def lend(self, kind: str) -> Server:
        """Raises AssertionError, with the server's log, when it does not start."""
        with self._lock:
            assert not self._closed, "the run is over: no servers are lent"
            assert kind in self._kinds, f"no kind {kind!r}; there are: {', '.join(self._kinds)}"
            if kind not in self._standing:
                self._standing[kind] = _Standing(self._kinds[kind]())
            return self._standing[kind].server

    def take_back(self) -> list[str]:
        """What is wrong with the servers after an environment; those are not lent again."""
        faults = []
        with self._lock:
            for kind, standing in list(self._standing.items()):
                if fault := standing.fault(self._settle_seconds):
                    faults.append(f"the {kind} server is not as it was lent: {fault}")
                    self._standing.pop(kind).stop()
        return faults

    def close(self) -> None:
        """Stops all servers. No more are lent."""
        with self._lock:
            self._closed = True
            with contextlib.ExitStack() as stack:  # each, whatever becomes of the others
                for standing in self._standing.values():
                    stack.callback(standing.stop)


class _Standing:
    """A server that runs, and what it was like before anybody used it."""

    def __init__(self, starting: contextlib.AbstractContextManager[Server]) -> None:
        with contextlib.ExitStack() as stack:
            self.server = stack.enter_context(starting)
            self._at_rest = {series: self.server.value(series) for series in AT_REST}
            self._stack = stack.pop_all()

    def fault(self, seconds: float) -> str | None:
        """How it differs from what it was, after so long; None if it does not."""
        try:
            for series, expected in self._at_rest.items():
                self.server.until(series, expected, seconds)
        except (AssertionError, OSError, http.client.HTTPException) as error:
            assert self.server.log is not None
            return f"{error!r}\n{self.server.log.read_text(errors='replace')[-LOG_CHARS:]}"
        return None

    def stop(self) -> None:
        self._stack.close()


@contextlib.contextmanager
def lending(**options: Any) -> Iterator[Lender]:
    """A Lender with these options that answers; at the end its servers are stopped."""
    lender = Lender(**options)
    desk = _Desk(lender)
    answering = threading.Thread(target=desk.serve_forever, daemon=True)
    answering.start()
    try:
        yield lender
    finally:
        lender.close()
        desk.shutdown()
        desk.server_close()
        answering.join()


class _Desk(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # who still asks is told that the run is over

    def __init__(self, lender: Lender) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.lender = lender
        lender.url = f"http://127.0.0.1:{self.server_port}"


class _Request(BaseHTTPRequestHandler):
    server: _Desk

    def do_GET(self) -> None:
        try:
            found = self.server.lender.lend(self.path.removeprefix("/"))
        except Exception as error:  # whatever it is, the tests that asked have to tell it
            self._answer(500, f"{type(error).__name__}: {error}")
            return
        ca_file = str(found.ca_file) if found.ca_file else None
        self._answer(
            200, json.dumps({"url": found.url, "api_key": found.api_key, "ca_file": ca_file})
        )

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The tests tell what went wrong."""
