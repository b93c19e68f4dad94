"""uvicorn's HTTP protocol with the deadlines it lacks, and with answers that HTTP/1.0 can read.

Stock uvicorn keeps half-sent requests and unread answers for ever, and accepts headers of any size.
Here a request must be complete in time, and a WebSocket upgrade reaches the socket's own class
(websocket.py) only with a header of sane size. An offer of another protocol is declined.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from functools import lru_cache, partial
from typing import Any, cast

import httptools
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from realtime_tts.logs import event
from realtime_tts.protocol.messages import ErrorMessage
from realtime_tts.protocol.parsing import encode
from realtime_tts.server.addresses import Address
from realtime_tts.server.alarm import Alarm
from realtime_tts.server.guarded import ABORT_EXTENSION, Guarded, forget

log = logging.getLogger(__name__)

_TOO_LARGE = "431 Request Header Fields Too Large"
_TOO_SLOW = "408 Request Timeout"
_PROBES = (b"GET /livez ", b"GET /readyz ", b"GET /health ")
"""Requests that are accepted even from a refused address: a flood through a proxy may come from the
same address as the probes, and is no reason to restart the server."""


@lru_cache(maxsize=8)
def _busy(code: str, message: str) -> bytes:
    """Return an answer that costs almost nothing: no request is parsed for it."""
    error = ErrorMessage(
        code=code, message=message, fatal=True, retryable=True, retry_after_ms=1_000
    )
    body = encode(error).encode()
    return (
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )


class GuardedHttp(Guarded, HttpToolsProtocol):
    """One socket until it is upgraded or closed."""

    def __init__(self, **by_uvicorn: Any) -> None:
        super().__init__(**by_uvicorn)
        self._in_header = True
        self._waiting_bytes = 0  # of a header or trailer that is not complete
        self._too_large = False
        self._declined_at: int | None = None  # where the header of a declined upgrade ends
        self._address: Address | None = None  # None for a proxy
        self._unwelcome = False  # whether its address opens too many connections
        self._header_alarm = Alarm(self._too_slow)
        self._body_alarm = Alarm(self._too_slow)
        self.stall = Alarm(partial(self._abort, "slow_http_reader"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._header_alarm.within(self.settings.handshake_timeout)
        if not self.addresses.is_proxy(self.client):
            self._address = self.addresses.of(self.client)
            self._address.begin_handshake(self, self._crowded_out)
            self._unwelcome = not self._address.connections.take(time.monotonic())

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._unwelcome and not data.startswith(_PROBES):
            self._refuse_address(
                "too_many_connections",
                "this address opens more connections a second than --connection-rate allows; keep "
                "them open, or have the server take more",
            )
            return
        # Counted before parsing: an endless header line reaches no callback, and neither does one
        # in the trailer of a chunked body. The deadline is armed here, because blank lines before a
        # request reach none either.
        self._waiting_bytes += len(data)
        if self._in_header:
            self._header_alarm.within(self.settings.handshake_timeout)
        self._parse(data)
        if self._waiting_bytes > self.settings.max_header_bytes:
            self._too_large = True
        if self._too_large:
            self._refuse(_TOO_LARGE)

    def _parse(self, data: bytes) -> None:
        """Parse what came. A client may offer HTTP/2, as Java's does with its first request, which
        need not be taken up. The parser takes what follows such a header for another protocol, so a
        new one gets the header without the offer, and then the rest."""
        rest = memoryview(data)
        while True:
            self._declined_at = None
            super().data_received(cast("bytes", rest))
            if self._declined_at is None:
                return
            rest = rest[self._declined_at :]
            head = self._header_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            super().data_received(head)

    def _header_without_upgrade(self) -> bytes:
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        kept = [b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade"]
        return b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, b"".join(kept))

    def _get_upgrade(self) -> bytes | None:
        """Return what the client offers; uvicorn reads only the last header `Connection`."""
        offers = [value.lower() for name, value in self.headers if name == b"upgrade"]
        return offers[-1] if offers and self.parser.should_upgrade() else None

    def _declines(self) -> bool:
        return self._get_upgrade() is not None and not self._should_upgrade()

    def _unsupported_upgrade_warning(self) -> None:
        """Note where the header ends: uvicorn calls this while it handles `HttpParserUpgrade`."""
        error = sys.exception()
        if error is not None and self._declines() and not self._too_large:
            self._declined_at = error.args[0]

    # Parser callbacks.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope = cast("dict[str, object]", self.scope)
        scope["extensions"] = {ABORT_EXTENSION: self._abort}
        self._header_alarm.within(self.settings.handshake_timeout)

    def on_headers_complete(self) -> None:
        self._header_alarm.stop()
        self._end_handshake()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.settings.max_header_bytes:
            self._too_large = True  # answered by data_received, never dispatched
            return
        if self._declines():
            return
        self._in_header, self._waiting_bytes = False, 0
        self._body_alarm.within(self.settings.body_timeout)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._waiting_bytes = 0
        if not self._too_large:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._waiting_bytes = 0
        self._body_alarm.stop()
        if not (self._too_large or self._declines()):
            self._in_header = True
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        if not self._too_large:
            super().handle_websocket_upgrade()
            self._forget()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.scope["http_version"] == "1.0":
            app = partial(_without_chunks, cycle, app)
        super()._start_asgi_task(cycle, app)

    def end_idle(self) -> None:
        """Answer a request that has begun to come, or a first one, and wait for no other."""
        self.timeout_keep_alive = 0
        if self.cycle is not None and not self._waiting_bytes:
            self.shutdown()

    # Giving up.

    def _too_slow(self) -> None:
        if not self._in_header and (self.cycle.response_started or self.pipeline):
            self._abort("slow_body")  # an answer has begun: to this request, or one before it
        elif not self._in_header or self._waiting_bytes:
            self._refuse(_TOO_SLOW)
        else:
            self._abort("silent")

    def _crowded_out(self) -> None:
        most = self.addresses.config.handshakes
        self._refuse_address(
            "too_many_handshakes",
            f"{most} connections of this address are open on which no request is complete",
        )

    def _refuse_address(self, code: str, message: str) -> None:
        """Answer at once, and log little: a refusal must cost next to nothing."""
        if self.transport.is_closing():
            return
        self.metrics.refused.labels(code).inc()
        if self._address is not None and (count := self._address.refused(time.monotonic())):
            name = self._address.name
            event(log, logging.WARNING, "address.refused", code=code, address=name, count=count)
        self.transport.write(_busy(code, message))
        self.transport.close()

    def _end_handshake(self) -> None:
        if self._address is not None:
            self._address.end_handshake(self)

    def _refuse(self, status: str) -> None:
        if self.transport.is_closing():
            return
        event(log, logging.WARNING, "http.refused", status=status, client=self.client)
        head = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        self.transport.write(head.encode())
        self.transport.close()
        self.loop.call_later(self.settings.close_timeout, self.transport.abort)

    def _abort(self, reason: str) -> None:
        self.metrics.socket_aborts.labels(reason).inc()
        event(log, logging.WARNING, "socket.abort", reason=reason, client=self.client)
        self.transport.abort()

    def _forget(self) -> None:
        self._end_handshake()
        forget(self, self._header_alarm, self._body_alarm, self.stall)
        self.parser = None  # type: ignore[assignment]  # it refers back to this


async def _without_chunks(
    cycle: RequestResponseCycle, app: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Run `app` for a client of HTTP/1.0, which knows no chunks: the end of the connection is that
    of an answer whose length is not given. uvicorn would chunk it, and a client that writes what it
    gets to a file, or plays it, would have the chunks' sizes in the sound."""

    unknown_length = False

    async def send_plain(message: Message) -> None:
        nonlocal unknown_length
        if message["type"] == "http.response.start":
            names = [name.lower() for name, _ in message["headers"]]
            if unknown_length := b"content-length" not in names:
                cycle.chunked_encoding = False
        elif unknown_length:
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    await app(scope, receive, send_plain)
