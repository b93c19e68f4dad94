"""uvicorn's HTTP protocol with the deadlines it lacks.

Stock uvicorn keeps half-sent requests and unread answers for ever, and takes headers of any size.
Here a request has to be complete in time, and a WebSocket upgrade arrives at the socket's own
class (websocket.py) only with a header of sane size.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from realtime_tts.logs import event
from realtime_tts.server.alarm import Alarm
from realtime_tts.server.websocket import ABORT_EXTENSION, Guarded, forget

log = logging.getLogger(__name__)

_TOO_LARGE = "431 Request Header Fields Too Large"
_TOO_SLOW = "408 Request Timeout"


class GuardedHttp(Guarded, HttpToolsProtocol):
    """One socket until it is upgraded or closed."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._in_header = True
        self._waiting_bytes = 0  # of a header that is not complete
        self._too_large = False
        self._header_alarm = Alarm(self._too_slow)
        self._body_alarm = Alarm(self._too_slow)
        self.stall = Alarm(partial(self._abort, "slow_http_reader"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._header_alarm.within(self.settings.handshake_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_header:
            # Counted before parsing: an endless header line reaches no callback. The deadline is
            # armed here, because blank lines before a request reach none either.
            self._waiting_bytes += len(data)
            self._header_alarm.within(self.settings.handshake_timeout)
        super().data_received(data)
        if self._in_header and self._waiting_bytes > self.settings.max_header_bytes:
            self._too_large = True
        if self._too_large:
            self._refuse(_TOO_LARGE)

    # Parser callbacks.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope = cast("dict[str, object]", self.scope)
        scope["extensions"] = {ABORT_EXTENSION: self._abort}
        self._header_alarm.within(self.settings.handshake_timeout)

    def on_headers_complete(self) -> None:
        self._header_alarm.stop()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.settings.max_header_bytes:
            self._too_large = True  # answered by data_received, never dispatched
            return
        self._in_header, self._waiting_bytes = False, 0
        self._body_alarm.within(self.settings.body_timeout)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._too_large:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._body_alarm.stop()
        if not self._too_large:
            self._in_header = True
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        if not self._too_large:
            super().handle_websocket_upgrade()
            self._forget()

    # Giving up.

    def _too_slow(self) -> None:
        if not self._in_header:
            self._abort("slow_body")  # an answer may be under way already
        elif self._waiting_bytes:
            self._refuse(_TOO_SLOW)
        else:
            self._abort("silent")

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
        forget(self, self._header_alarm, self._body_alarm, self.stall)
        self.parser = None  # type: ignore[assignment]  # it calls methods of this
