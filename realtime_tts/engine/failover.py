"""Failover: turns survive their engine.

All that an engine needs to go on with an utterance is small: its settings, the token ids of its
text and the codes that were heard of it, 400 bytes a second. They are kept here while it is open.
When its engine is killed, hangs or raises, another one with the same checkpoint, or the same one
after its restart, is given them and goes on with the next frame. Nothing is heard twice, nothing is
lost: sound that was made and had not arrived is made again. Turns also leave engines that still
live, where their listeners gain by it (moves.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from msgspec.structs import replace

from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.engine.link import (
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
    Stranded,
    Waits,
    Why,
)
from realtime_tts.engine.moves import MovePolicy
from realtime_tts.engine.open_utterance import OpenUtterance
from realtime_tts.engine.trials import MOST_TRIALS, Trials
from realtime_tts.errors import EngineError

_LOST = frozenset({"engine_restarted", EngineError.code})
"""Codes of failures that are the engine's, and need not be the turn's."""
_NOBODY = "no engine went on with this turn; send its text again"
_RETRY_SECONDS = 0.05
_LOOK_SECONDS = 0.05
"""How often it is seen whether turns are to leave an engine."""


class Failover:
    """An `EngineLink` over another one, which tells it of failures and is asked again.

    `patience`: seconds that a turn waits for an engine; then it fails as it would have at first.
    """

    def __init__(self, link: EngineLink, patience: float, policy: MovePolicy | None = None) -> None:
        self._link, self._patience = link, patience
        self._policy = policy or MovePolicy()
        self._open: dict[str, OpenUtterance] = {}
        self._renamed: dict[str, str] = {}
        """The ids of those that engines know by another name, by that name."""
        self._lost: dict[str, None] = {}
        """Those that no engine has, in the order in which they were lost."""
        self._trials = Trials()
        self._deliver: Callable[[list[Event]], None] | None = None
        self._timer: asyncio.Handle | None = None
        self._looking: asyncio.Handle | None = None
        self._looked_at = 0.0

    # The link.

    @property
    def info(self) -> EngineInfo:
        """As the link's."""
        return self._link.info

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        self._deliver = deliver
        self._link.start(self._take)

    def submit(self, *commands: Command) -> None:
        """Note and pass on; what is for those that no engine has comes with their `Open`."""
        now = time.monotonic()
        passed = [each for command in commands if (each := self._noted(command, now)) is not None]
        if passed:
            self._link.submit(*passed)

    def info_for(self, spec: UtteranceSpec) -> EngineInfo:
        return self._link.info_for(spec)

    def check(self, spec: UtteranceSpec) -> None:
        self._link.check(spec)

    def status(self) -> EngineStatus:
        return self._link.status()

    def stranded(self) -> list[Stranded]:
        """None: they are moved here."""
        return []

    async def stop(self) -> None:
        """Stop the link; those that no engine has fail as they would have at first."""
        for timer in (self._timer, self._looking):
            if timer is not None:
                timer.cancel()
        for id in list(self._lost):
            self._give_up(id)
        await self._link.stop()

    # Commands and events.

    def _noted(self, command: Command, now: float) -> Command | None:
        """The command as an engine is to hear it now, if one is."""
        id = command.id
        if isinstance(command, Open):
            self._open[id] = OpenUtterance(command, now)
            self._look_soon(now)
            return command
        utterance, waits = self._open.get(id), id in self._lost
        if utterance is None:
            return None  # it ended while the command was on its way
        if isinstance(command, Cancel):
            self._forget(id)
        else:
            utterance.note(command, now)
        if waits:
            return None
        return command if utterance.name == id else replace(command, id=utterance.name)

    def _take(self, events: list[Event]) -> None:
        now = time.monotonic()
        told: list[Event] = []
        for event in events:
            id = self._renamed.get(event.id, event.id)
            utterance = self._open.get(id)
            if utterance is None or utterance.name != event.id:
                continue  # it was cancelled, or has moved away
            told += self._told(event if event.id == id else replace(event, id=id), utterance, now)
        self._tell(told)

    def _told(self, event: Event, utterance: OpenUtterance, now: float) -> list[Event]:
        """What the front hears of an event."""
        if isinstance(event, Last):
            return self._ended(event, utterance, now)
        if isinstance(event, Started):
            return [utterance.started(event)]
        if isinstance(event, Waits):
            utterance.stands(event)
        else:
            if utterance.suspected and self._lost:
                self._reopen_soon()  # the next one may be tried
            utterance.heard(event, now)
        return [event]

    def _ended(self, event: Last, utterance: OpenUtterance, now: float) -> list[Event]:
        """What the front hears of an end: nothing if another engine is to go on."""
        tried = self._trials.ended(utterance)
        if isinstance(event, Failed) and event.code in _LOST:
            utterance.failed(event, now, tried=tried)
            if utterance.failed_trials < MOST_TRIALS:
                self._lost[event.id] = None
                self._reopen_soon()
                return []
            why = f"{utterance.failures} engines failed under this turn; do not send its text again"
            event = replace(event, message=why, retryable=False)
        elif isinstance(event, Refused) and utterance.lost_at is not None:
            self._lost[event.id] = None
            self._reopen_soon(_RETRY_SECONDS)
            return []
        self._forget(event.id)
        return [event]

    def _tell(self, events: list[Event]) -> None:
        if events:
            assert self._deliver is not None, "start() comes before the first event"
            self._deliver(events)

    def _forget(self, id: str) -> OpenUtterance:
        self._lost.pop(id, None)
        utterance = self._open.pop(id)
        self._trials.ended(utterance)
        self._renamed.pop(utterance.name, None)
        return utterance

    # Going on elsewhere.

    def _reopen_soon(self, seconds: float = 0.0) -> None:
        """Not at once: who tells of a failure is not ready for new commands yet."""
        if self._timer is not None:
            if seconds:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._reopen)

    def _reopen(self) -> None:
        """Give those that no engine has to one, if there is any."""
        self._timer = None
        now, status = time.monotonic(), self._link.status()
        for id in list(self._lost):
            lost_at = self._open[id].lost_at
            assert lost_at is not None, f"{id} was never lost"
            if status.failure is not None or now - lost_at > self._patience:
                self._give_up(id)
            elif status.ready:
                self._place(id, now, status)
        if self._lost:
            self._reopen_soon(_RETRY_SECONDS)

    def _place(self, id: str, now: float, status: EngineStatus) -> None:
        """Not one that is suspected beside another, or while an engine may be hanging of one."""
        utterance = self._open[id]
        if utterance.suspected and (
            self._policy.is_silent(status) or not self._trials.begins(utterance, now)
        ):
            return
        del self._lost[id]
        self._go_on(utterance, now, moved=False)

    def _go_on(self, utterance: OpenUtterance, now: float, *, moved: bool) -> None:
        self._renamed.pop(utterance.name, None)
        commands = utterance.again(now, moved=moved)
        self._renamed[utterance.name] = utterance.id
        self._link.submit(*commands)

    def _give_up(self, id: str) -> None:
        utterance = self._forget(id)
        assert utterance.failure is not None, f"{id} has an engine"
        self._tell([utterance.failure])

    # Leaving engines that live.

    def _look_soon(self, now: float) -> None:
        if self._looking is None:
            self._looked_at = now
            self._looking = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Whether turns are to leave an engine. If this process itself stood still, what engines
        said meanwhile has not been read yet."""
        self._looking, now = None, time.monotonic()
        if now - self._looked_at < 2 * _LOOK_SECONDS:
            for group in self._link.stranded():
                self._relieve(group, now)
        if self._open:
            self._look_soon(now)

    def _relieve(self, group: Stranded, now: float) -> None:
        """Those leave first whose listeners have least."""
        found = (self._open.get(self._renamed.get(name, name)) for name in group.ids)
        due = [one for one in found if one is not None and self._is_due(one, group.why, now)]
        due.sort(key=lambda utterance: utterance.lead(now))
        for utterance in due[: group.room]:
            self._move(utterance, group.why, now)

    def _is_due(self, utterance: OpenUtterance, why: Why, now: float) -> bool:
        if why is Why.SILENT and (utterance.lost_at is not None or utterance.suspected):
            return False  # it may be what engines fall silent of: it waits for this one's end
        return self._policy.is_due(
            why,
            lead=utterance.lead(now),
            waits=utterance.waits,
            age=now - utterance.opened_at,
            moved=utterance.moved,
        )

    def _move(self, utterance: OpenUtterance, why: Why, now: float) -> None:
        """The engine that had it hears of that when it can; what it still says is not heard."""
        if why is Why.SILENT:
            if utterance.failures and not self._trials.begins(utterance, now):
                return  # it would be suspected, and another one is tried
            utterance.failures += 1
        if utterance.lost_at is None:
            utterance.lost_at = now
            utterance.failure = Failed(utterance.id, "engine_restarted", _NOBODY, retryable=True)
        self._link.submit(Cancel(utterance.name))
        self._go_on(utterance, now, moved=True)
