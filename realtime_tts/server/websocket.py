"""uvicorn's WebSocket protocol, made safe against bad peers.

Measured on uvicorn 0.54: a peer that stops reading is never dropped (a failed keepalive closes the
transport gracefully, which waits for a buffer nobody reads), pings of a peer that does not read
grow memory, and an over-long header leaves the handshake hanging. The subclass aborts such sockets,
which frees them and tells the application at once.

It relies on methods of `WebSocketsSansIOProtocol` that uvicorn does not promise to keep;
`tests/server/test_websocket.py` fails if one of them goes away.
"""

from __future__ import annotations

import asyncio
import codecs
import logging
from functools import partial
from typing import Any, cast

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.protocol import State

from realtime_tts.logs import event
from realtime_tts.protocol.messages import CloseCode
from realtime_tts.server.addresses import network_of
from realtime_tts.server.alarm import Alarm
from realtime_tts.server.guarded import (
    ABORT_EXTENSION,
    FLUSH_EXTENSION,
    UNREAD_EXTENSION,
    Guarded,
    forget,
)
from realtime_tts.server.refusals import SLOW_READER

log = logging.getLogger(__name__)

_READ_AHEAD, _READ_AHEAD_BYTES = 8, 16_384
"""Messages of one client, or bytes, that may wait before its socket is no longer read."""
_AT_ONCE = 1_024
"""Bytes that are parsed at a time: at most 170 frames, which take a millisecond."""
MORE_EXTENSION = "realtime_tts.more"
"""Key in an ASGI message that is sent: others follow at once, and can leave with it."""

_Utf8Decoder = codecs.getincrementaldecoder("utf-8")

_quiet = logging.getLogger(__name__ + ".frames")
_quiet.setLevel(logging.WARNING)  # at lower levels the library logs every frame with its text


class GuardedWebSocket(Guarded, WebSocketsSansIOProtocol):
    """One socket from the upgrade on."""

    def __init__(self, **by_uvicorn: Any) -> None:
        super().__init__(**by_uvicorn)
        self.conn.logger, self.conn.debug = _quiet, False
        self.close_timeout = self.settings.close_timeout
        self._aborted = False
        self._pings = 0
        self._excused = False  # whether the last ping need not be answered in time
        self._late = 0  # pings without an answer, which may still come
        self._unread = bytearray()  # received but not parsed; reading pauses meanwhile
        self._parsing = False  # whether a time slice is to come
        self._ahead = 0  # bytes of messages that wait to be handled
        self._ping_window_ends = 0.0
        self._utf8: codecs.IncrementalDecoder | None = None  # None once the text is not UTF-8
        self._handshake = Alarm(self._no_handshake)
        self.stall = Alarm(partial(self.abort, SLOW_READER))
        self._linger = Alarm(self._lingered)

    # A socket's life.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._handshake.within(self.settings.handshake_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        forget(self, self._handshake, self.stall, self._linger)

    def eof_received(self) -> None:
        self._end_soon()  # asyncio closes now, and waits for what the peer may never read

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        if not self.disconnected:
            self._end_soon()

    def shutdown(self) -> None:
        super().shutdown()
        self._end_soon()

    def _end_soon(self) -> None:
        """Drop the socket unless its close is over in time."""
        self._linger.within(self.settings.close_timeout + 1.0)

    async def run_asgi(self) -> None:
        extensions = cast("dict[str, object]", self.scope["extensions"])
        extensions[ABORT_EXTENSION] = self.abort
        extensions[FLUSH_EXTENSION] = self._flush
        await super().run_asgi()

    # What comes in.

    def data_received(self, data: bytes) -> None:
        """Parse what came. A read may bring 40,000 frames, and a pass of the event loop the reads
        of a thousand sockets, so more than a little is parsed in time slices."""
        if len(data) <= _AT_ONCE and not self._unread:
            if self.slices.at_once(partial(self._parse, data)):
                return
        self._unread += data
        self.transport.pause_reading()
        self._parse_on()

    async def receive(self) -> ASGIReceiveEvent:
        message = await super().receive()
        self._parse_on()
        return message

    def _parse_on(self) -> None:
        if self._unread and not self._parsing and self._may_parse():
            self._parsing = True
            self.slices.add(self._parse_slice, self.client and network_of(self.client[0]))

    def _may_parse(self) -> bool:
        """Return whether to parse more: while few messages wait, and always after our close."""
        return self.close_sent or self.queue.qsize() < _READ_AHEAD

    def _parse_slice(self) -> bool:
        """Parse a little more, as a step of `TimeSlices`."""
        data = bytes(self._unread[:_AT_ONCE])
        del self._unread[:_AT_ONCE]
        try:
            self._parse(data)
        except BaseException:
            self.abort("fault")
            raise
        if self.transport.is_closing():
            self._unread.clear()
        elif not self._unread and not self.read_paused:
            self.transport.resume_reading()
        self._parsing = bool(self._unread) and self._may_parse()
        return self._parsing

    def _parse(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self._answer_bad_request()

    def _answer_bad_request(self) -> None:
        """Send the library's 414 or 431, which uvicorn leaves unsent, or a 400 of our own."""
        answer = b"".join(self.conn.data_to_send())
        if not answer:
            answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        self.transport.write(answer)
        self.transport.close()
        self._end_soon()

    def handle_ping(self) -> None:
        if self._aborted or self._is_flood("ping_flood"):
            return
        super().handle_ping()
        if self.transport.get_write_buffer_size() > self.settings.write_buffer_cap:
            self.abort("write_buffer")

    def handle_pong(self, event: Frame) -> None:
        """Answers to our pings are not counted; other pongs are limited like pings."""
        if self._aborted or self.pending_ping_payload == bytes(event.data):
            super().handle_pong(event)
        elif self._late:
            self._late -= 1
        else:
            self._is_flood("pong_flood")

    def _is_flood(self, reason: str) -> bool:
        """Count a control frame; too many in a second end the socket."""
        now = self.loop.time()
        if now >= self._ping_window_ends:
            self._ping_window_ends, self._pings = now + 1.0, 0
        self._pings += 1
        if self._pings > self.settings.pings_per_second:
            self.abort(reason)
            return True
        return False

    def handle_text(self, event: Frame) -> None:
        self._utf8 = _Utf8Decoder()
        self.curr_msg_data_type = "text"
        if self._is_valid(event):
            super().handle_text(event)

    def handle_cont(self, event: Frame) -> None:
        if self._aborted or not self._is_valid(event):
            return
        super().handle_cont(event)
        if len(self.frames) > self.settings.pending_fragments:
            self.abort("fragment_flood")

    def _is_valid(self, event: Frame) -> bool:
        """Return whether the text so far is UTF-8; if not, close before its other fragments come.

        uvicorn would find it at the end, log a traceback, and raise if the peer has closed.
        """
        if self.curr_msg_data_type == "bytes":
            return True
        if self._utf8 is None:
            return False
        try:
            self._utf8.decode(event.data, final=event.fin)
        except UnicodeDecodeError:
            self._utf8, self.frames = None, []
            if self.conn.state is State.OPEN:
                self.conn.send_close(CloseCode.INVALID_UTF8, "text must be UTF-8")
                self.handle_parser_exception()
            return False
        return True

    def send_receive_event_to_app(self) -> None:
        """Let a few messages wait before reading stops: uvicorn stops after every message until it
        is taken, which costs two system calls each."""
        if self._aborted:
            return
        size = sum(map(len, self.frames))
        paused, self.read_paused = self.read_paused, True
        super().send_receive_event_to_app()
        self.read_paused = paused
        waiting = self.queue.qsize()
        self._ahead = size if waiting <= 1 else self._ahead + size
        full = waiting >= _READ_AHEAD or self._ahead >= _READ_AHEAD_BYTES
        if full and not (paused or self._unread or self.close_sent):
            self.read_paused = True
            self.transport.pause_reading()

    # What goes out.

    async def send(self, message: ASGISendEvent) -> None:
        if MORE_EXTENSION in message and self._can_hold():
            self._hold(message)
            return
        if self.close_sent:
            # For what the peer sent, or did not answer: the disconnect still waits to be taken.
            raise ClientDisconnected
        if self.conn.eof_sent and not self.handshake_complete:
            # The server shuts down and has answered for the application: the library asserts that
            # nothing follows.
            self.handshake_complete = True
            raise ClientDisconnected
        await super().send(message)
        if self.close_sent:
            # A refusal answers the handshake too; uvicorn would log each one as our error.
            self.handshake_complete = True
            self._parse_on()

    def _can_hold(self) -> bool:
        return self.conn.state is State.OPEN and not self.disconnected and self.writable.is_set()

    def _hold(self, message: ASGISendEvent) -> None:
        """Hold a message for the next one, or a flush: one system call sends all."""
        data = cast("dict[str, str | bytes]", message)
        if "text" in data:
            self.conn.send_text(cast("str", data["text"]).encode())
        else:
            self.conn.send_binary(cast("bytes", data["bytes"]))

    def _flush(self) -> None:
        held = b"".join(self.conn.data_to_send())
        if held and not self.disconnected:
            self.transport.write(held)

    def send_keepalive_ping(self) -> None:
        super().send_keepalive_ping()
        extensions = cast("dict[str, Any]", self.scope["extensions"])
        self._excused = UNREAD_EXTENSION in extensions and extensions[UNREAD_EXTENSION]()

    def keepalive_timeout(self) -> None:
        if self._excused and not (self.close_sent or self.transport.is_closing()):
            # The kernel still finds a dead peer (`tcp_user_timeout`), as this one gets more pings.
            self.pong_timer = self.pending_ping_payload = None
            self._late += 1
            self.schedule_ping()
            return
        super().keepalive_timeout()  # says 1011, in case the peer still listens
        self.abort("ping_timeout")

    # Giving up.

    def abort(self, reason: str) -> None:
        """Drop the socket now; the application gets `reason`."""
        if self._aborted:
            return
        self._aborted = True
        self.metrics.socket_aborts.labels(reason).inc()
        if reason == SLOW_READER:
            self.metrics.slow_reader_aborts.inc()
        event(log, logging.WARNING, "socket.abort", reason=reason, client=self.client)
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1006, "reason": reason})
        self.transport.abort()

    def _no_handshake(self) -> None:
        if not self.handshake_complete:
            self.abort("handshake_timeout")

    def _lingered(self) -> None:
        if not self.disconnected:
            self.abort("close_timeout")
