"""An engine process that several fronts share, as one of those speaks with it that did not start
it. The parent starts it, watches it, and tells this front where it is."""

from __future__ import annotations

from collections.abc import Callable

from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.channel import Channel
from realtime_tts.engine.health import EngineHealth
from realtime_tts.engine.interface import no_voice
from realtime_tts.engine.link import Event
from realtime_tts.engine.remote import RemoteEngine


class SharedEngine(RemoteEngine):
    """An `EngineLink`. It is ready from the engine's answer to this front until `lost`.

    `health.silence` stays zero: an engine that hangs is its parent's business, and is ended.
    """

    def __init__(self, name: str, registered: Callable[[str], bool] = no_voice) -> None:
        super().__init__(name, EngineHealth(None, None), registered)

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        assert self._deliver is None, "an engine starts once"
        self._deliver = deliver

    def found(self, addresses: Addresses) -> None:
        """There is a process of it now, which may still be loading."""
        self.lost(None)
        self._health.born()
        self._channel = Channel(addresses, self.name, self._on_message, self._ended)
        self._channel.listen()

    def lost(self, failure: str | None) -> None:
        """The process has ended; with `failure` there will be no other one. Idempotent."""
        self._failure = failure
        if self._channel is not None:
            channel, self._channel = self._channel, None
            channel.receive_rest()
            channel.close()
            self._health.ready = False
            self._interrupted()

    def _ended(self) -> None:
        """Its end of the stream is closed, which is known before its parent can say so."""
        if self._channel is not None:
            self.lost(None)

    async def stop(self) -> None:
        """Take leave of the engine, which goes on."""
        self.lost(None)
