"""An engine process that several fronts share, for a front that did not start it.

The supervisor starts it, watches it, and notifies this front where it listens.
"""

from __future__ import annotations

from collections.abc import Callable

from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.channel import Channel
from realtime_tts.engine.health import EngineHealth
from realtime_tts.engine.interface import EngineInfo, no_voice
from realtime_tts.engine.link import Event
from realtime_tts.engine.remote import RemoteEngine


class SharedEngine(RemoteEngine):
    """An `EngineLink` to a shared engine. It is ready from the engine's answer to this front until
    `lost`.

    `health.silence` stays zero: the supervisor ends an engine that hangs. `info`: what the engine
    can do, if that is known before it answers.
    """

    def __init__(
        self,
        name: str,
        registered: Callable[[str], bool] = no_voice,
        info: EngineInfo | None = None,
    ) -> None:
        super().__init__(name, EngineHealth(None, None), registered)
        self._health.info = info

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        assert self._deliver is None, "an engine starts once"
        self._deliver = deliver

    def found(self, addresses: Addresses) -> None:
        """Connect to a new process of the engine, which may still be loading."""
        self.lost(None)
        self._health.born()
        self._channel = Channel(addresses, self.name, self._on_message, self._ended)
        self._channel.listen()

    def lost(self, failure: str | None) -> None:
        """Record that the process has ended; with `failure`, none will follow it. Idempotent."""
        self._failure = failure
        if self._channel is not None:
            channel, self._channel = self._channel, None
            channel.receive_rest()
            channel.close()
            self._health.ready = False
            self._interrupted()

    def _ended(self) -> None:
        """Treat a closed stream as `lost`: it is noticed before the supervisor's message."""
        if self._channel is not None:
            self.lost(None)

    async def stop(self) -> None:
        """Disconnect from the engine, which goes on."""
        self.lost(None)
