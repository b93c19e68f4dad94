"""The front's end of the stream between a front and an engine process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from realtime_tts.engine import wire
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.stream import Stream

log = logging.getLogger(__name__)


class Channel:
    """A front's connection to an engine process, on one event loop.

    `on_message` gets everything the engine sends to this front, in order; then `on_end` is called,
    if the engine ends first. `name` is the engine's in the log. Raises OSError if the machine has
    no more sockets, or there is no engine.
    """

    def __init__(
        self,
        addresses: Addresses,
        name: str,
        on_message: Callable[[wire.Up], None],
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._on_message, self._on_end = on_message, on_end
        self._loop = asyncio.get_running_loop()
        self._stream = Stream(addresses.connect())
        self._file = self._stream.fileno()
        self._closed = False

    def listen(self) -> None:
        """Begin to hand over messages."""
        self._loop.add_reader(self._file, self._receive)

    def send(self, message: wire.Down) -> None:
        """Send a message to the engine. Never blocks: an engine that reads nothing is killed."""
        if not self._closed and not self._stream.send(wire.encode(message)):
            self._loop.add_writer(self._file, self._flush)

    def receive_rest(self) -> None:
        """Hand over all messages that have arrived."""
        while self._receive():
            pass

    def close(self) -> None:
        """Close the socket. Idempotent."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._file)
            self._loop.remove_writer(self._file)
            self._stream.close()

    def _flush(self) -> None:
        if self._stream.flush():
            self._loop.remove_writer(self._file)

    def _receive(self) -> bool:
        """Hand over messages that have arrived, a limited number, so that other sockets get their
        turn. Returns whether there were any."""
        if self._closed:
            return False
        try:
            messages = self._stream.received()
        except BlockingIOError:
            return False
        except EOFError:
            self.close()
            self._on_end()
            return False
        for message in messages:
            if self._closed:
                break
            try:
                self._on_message(wire.decode_up(message))
            except Exception:  # the messages behind it must arrive all the same
                log.exception("engine.message_lost", extra={"fields": {"engine": self._name}})
        return True
