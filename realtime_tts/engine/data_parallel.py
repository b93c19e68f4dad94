"""Data-parallel engines: several engines with one checkpoint, which the front sees as one.

A new turn goes to the engine with the most free capacity, and stays there. If that engine refuses
it, an engine that has capacity is tried before the front is notified. Turns of one session may be
spoken by different engines: they share only the listener, whose state travels with `Open`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from realtime_tts.engine import moves
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.engine.link import (
    Cancel,
    Command,
    EngineLink,
    EngineStatus,
    Event,
    Last,
    Open,
    Refused,
    Stranded,
)


@dataclass(slots=True)
class _Waiting:
    """A turn that has not started: its commands so far, and the engines that were asked."""

    opened: Open
    commands: list[Command]
    tried: set[int]


class DataParallelEngines(EngineLink):
    """An `EngineLink` over several links to engines with the same checkpoint.

    It is ready once all of them have been, and then as long as one of them is. `loaded`: all have
    been ready before, and their `info` is known.
    """

    def __init__(self, links: Sequence[EngineLink], *, loaded: bool = False) -> None:
        assert links, "there is at least one engine"
        self._links = tuple(links)
        self._open = [0] * len(links)  # utterances that have not ended, by engine
        self._engine_of: dict[str, int] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._deliver: Callable[[list[Event]], None] | None = None
        self._complete = loaded

    @property
    def info(self) -> EngineInfo:
        """What every engine can do; `slots` and `executions` are those of all engines together."""
        infos = [link.info for link in self._links]
        executions = tuple(each for info in infos for each in info.executions)
        return replace(infos[0], slots=sum(info.slots for info in infos), executions=executions)

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        self._deliver = deliver
        for link in self._links:
            link.start(self._publish)

    def submit(self, *commands: Command) -> None:
        """Pass commands to their engines; those for one engine stay together, in their order."""
        groups: dict[int, list[Command]] = {}
        for command in commands:
            engine = self._engine_for(command)
            if engine is not None:
                if (waiting := self._waiting.get(command.id)) is not None:
                    waiting.commands.append(command)
                groups.setdefault(engine, []).append(command)
        for engine, group in groups.items():
            self._links[engine].submit(*group)

    def check(self, spec: UtteranceSpec) -> None:
        self._links[0].check(spec)

    def status(self) -> EngineStatus:
        """Return sums over the engines that are ready. `failure` is set once no engine is left, or
        if one fails before all were ready."""
        found = [link.status() for link in self._links]
        ready = [status for status in found if status.ready]
        failures = [status.failure for status in found if status.failure is not None]
        self._complete = self._complete or len(ready) == len(found)
        failed = bool(failures) and (not self._complete or len(failures) == len(found))
        return EngineStatus(
            ready=self._complete and bool(ready),
            active=sum(status.active for status in ready),
            held=sum(status.held for status in ready),
            queued=sum(status.queued for status in ready),
            capacity=sum(status.capacity for status in ready),
            last_step_age=min((status.last_step_age for status in ready), default=0.0),
            failure=failures[0] if failed else None,
            others=sum(status.others for status in ready),
        )

    def stranded(self) -> list[Stranded]:
        """Return the turns that should leave engines that are silent, overfull or stopping."""
        turns = zip(self._links, self._open, strict=True)
        loads = [moves.Load(link.status(), opened) for link, opened in turns]
        return [
            Stranded(why, [id for id, owner in self._engine_of.items() if owner == engine], free)
            for engine, why, free in moves.stranded(loads)
        ]

    async def stop(self) -> None:
        await asyncio.gather(*(link.stop() for link in self._links))

    # Which engine speaks what.

    def _engine_for(self, command: Command) -> int | None:
        if isinstance(command, Open):
            engine = self._pick(command)
            self._waiting[command.id] = _Waiting(command, [], {engine})
            self._begin(command.id, engine)
            return engine
        if isinstance(command, Cancel):
            self._waiting.pop(command.id, None)
            return self._over(command.id)
        return self._engine_of.get(command.id)  # None: it ended while the command was on its way

    def _pick(self, command: Open) -> int:
        """Return the engine for a new turn."""
        free = self._free()
        return max(range(len(self._links)), key=free.__getitem__)

    def _pick_again(self, command: Open, tried: Collection[int]) -> int | None:
        """Return another engine than those `tried` for a turn; None if none has capacity."""
        free = self._free()
        ready = [
            engine
            for engine in range(len(free))
            if engine not in tried and free[engine] > (True, 0)
        ]
        return max(ready, key=free.__getitem__, default=None)

    def _free(self) -> list[tuple[bool, int]]:
        """Return for each engine whether it takes turns, and its free capacity. This front's own
        turns are counted here, because an engine's report of them is older."""
        statuses = [link.status() for link in self._links]
        return [
            (moves.takes_turns(status), status.capacity - status.others - opened)
            for status, opened in zip(statuses, self._open, strict=True)
        ]

    def _begin(self, id: str, engine: int) -> None:
        self._engine_of[id] = engine
        self._open[engine] += 1

    def _over(self, id: str) -> int | None:
        engine = self._engine_of.pop(id, None)
        if engine is not None:
            self._open[engine] -= 1
        return engine

    def _publish(self, events: list[Event]) -> None:
        kept = [event for event in events if not self._retried(event)]
        for event in kept:
            if isinstance(event, Last):
                self._over(event.id)
        assert self._deliver is not None, "start() comes before the first event"
        if kept:
            self._deliver(kept)

    def _retried(self, event: Event) -> bool:
        """Try a refused turn on another engine. Returns whether that was done, so that the front is
        not notified of the refusal."""
        waiting = self._waiting.get(event.id)
        if waiting is None:
            return False
        if isinstance(event, Refused):
            engine = self._pick_again(waiting.opened, waiting.tried)
            if engine is not None:
                self._over(event.id)
                self._begin(event.id, engine)
                waiting.tried.add(engine)
                self._links[engine].submit(*waiting.commands)
                return True
        del self._waiting[event.id]
        return False
