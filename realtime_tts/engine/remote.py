"""An engine in another process, as a front communicates with it, whoever starts and watches it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from realtime_tts.engine import wire
from realtime_tts.engine.channel import Channel
from realtime_tts.engine.health import EngineHealth
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec, check_spec
from realtime_tts.engine.link import (
    RESTARTED,
    Cancel,
    Command,
    EngineLink,
    EngineStatus,
    Event,
    Failed,
    Last,
    Open,
    Refused,
    Started,
)


class RemoteEngine(EngineLink):
    """The part of an `EngineLink` that only needs a channel. `name` is the engine's in the log.
    `registered` returns whether a name is that of a registered voice."""

    def __init__(self, name: str, health: EngineHealth, registered: Callable[[str], bool]) -> None:
        self.name = name
        self._health = health
        self._registered = registered
        self._channel: Channel | None = None
        self._deliver: Callable[[list[Event]], None] | None = None
        self._open: set[str] = set()
        self._failure: str | None = None

    @property
    def info(self) -> EngineInfo:
        """What the engine can do. Only available once it is ready; it is kept through restarts."""
        info = self._health.info
        assert info is not None, "the engine is not loaded yet: check status().ready"
        return info

    @property
    def open_utterances(self) -> int:
        """Number of utterances given to the engine that have not ended."""
        return len(self._open)

    def submit(self, *commands: Command) -> None:
        if self._channel is None or not self._health.ready:
            self._refuse(commands)
            return
        for command in commands:
            if isinstance(command, Open):
                self._open.add(command.id)
            elif isinstance(command, Cancel):
                self._open.discard(command.id)
        self._channel.send(wire.Commands(list(commands)))

    def check(self, spec: UtteranceSpec) -> None:
        check_spec(self.info, spec, self._registered)

    def status(self) -> EngineStatus:
        return self._health.status(self._failure)

    # Events.

    def _on_message(self, message: wire.Up) -> None:
        if isinstance(message, wire.Happened):
            self._publish(message.events)
        self._health.heard(message)

    def _publish(self, events: list[Event]) -> None:
        for index, one in enumerate(events):
            if isinstance(one, Last):
                self._open.discard(one.id)
            elif isinstance(one, Started):
                events[index] = replace(one, engine=self.name)
        if events:
            assert self._deliver is not None, "start() comes before the first event"
            self._deliver(events)

    def _refuse(self, commands: tuple[Command, ...]) -> None:
        message = self._failure or (
            "the engine is still loading" if self._health.info is None else "the engine restarts"
        )
        refused: list[Event] = [
            Refused(command.id, "engine_unavailable", message, 1.0)
            for command in commands
            if isinstance(command, Open)
        ]
        if refused:  # not at once: the caller is not ready for the answer yet
            asyncio.get_running_loop().call_soon(self._publish, refused)

    def _interrupted(self) -> None:
        """Fail the utterances that the engine was speaking, because it has ended."""
        self._fail_open(*RESTARTED)

    def _fail_open(self, code: str, message: str) -> None:
        failed: list[Event] = [Failed(id, code, message, True) for id in sorted(self._open)]
        self._publish(failed)
