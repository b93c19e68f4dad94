"""Failover: turns survive their engine.

An engine needs little to continue an utterance: its settings, the token ids of its text and the
codes of the speech that was delivered, 400 bytes a second. They are kept here while it is open.
When its engine is killed, hangs or raises, another one with the same checkpoint, or the same one
after its restart, gets them and continues with the next frame. Nothing is heard twice, nothing is
lost: sound that was made and had not arrived is made again. Turns also leave engines that still
live, where their listeners gain by it (moves.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from msgspec.structs import replace

from realtime_tts.engine import moves
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
from realtime_tts.engine.open_utterance import OpenUtterance
from realtime_tts.engine.trials import MOST_TRIALS, Trials
from realtime_tts.errors import EngineError

_LOST = frozenset({"engine_restarted", EngineError.code})
"""Codes of failures that are the engine's, and perhaps not caused by the turn."""
_NOBODY = "no engine went on with this turn; send its text again"
_RETRY_SECONDS = 0.05
_CHECK_SECONDS = 0.05
"""Seconds between two checks whether turns should leave an engine."""


class Failover(EngineLink):
    """An `EngineLink` over another one, which reopens utterances that lost their engine.

    `patience`: seconds that a turn waits for an engine before it fails with its first failure.
    """

    def __init__(self, link: EngineLink, patience: float) -> None:
        self._link, self._patience = link, patience
        self._open: dict[str, OpenUtterance] = {}
        self._renamed: dict[str, str] = {}
        """Original utterance ids, by the id that the current engine knows them by."""
        self._lost: dict[str, None] = {}
        """Ids of utterances that no engine has, in the order in which they were lost."""
        self._trials = Trials()
        self._deliver: Callable[[list[Event]], None] | None = None
        self._timer: asyncio.Handle | None = None
        self._check_timer: asyncio.Handle | None = None
        self._checked_at = 0.0

    # The link.

    @property
    def info(self) -> EngineInfo:
        """What the engines behind the link can do."""
        return self._link.info

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        self._deliver = deliver
        self._link.start(self._take)

    def submit(self, *commands: Command) -> None:
        """Record commands and pass them on, except for utterances that have no engine."""
        now = time.monotonic()
        passed = [
            each for command in commands if (each := self._recorded(command, now)) is not None
        ]
        if passed:
            self._link.submit(*passed)

    def info_for(self, spec: UtteranceSpec) -> EngineInfo:
        return self._link.info_for(spec)

    def check(self, spec: UtteranceSpec) -> None:
        self._link.check(spec)

    def status(self) -> EngineStatus:
        return self._link.status()

    async def stop(self) -> None:
        """Stop the link; utterances without an engine fail with their first failure."""
        for timer in (self._timer, self._check_timer):
            if timer is not None:
                timer.cancel()
        for id in list(self._lost):
            self._give_up(id)
        await self._link.stop()

    # Commands and events.

    def _recorded(self, command: Command, now: float) -> Command | None:
        """Record the command. Return it as the engine has to get it, or None if no engine does."""
        id = command.id
        if isinstance(command, Open):
            self._open[id] = OpenUtterance(command, now)
            self._check_soon(now)
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
        published: list[Event] = []
        for event in events:
            id = self._renamed.get(event.id, event.id)
            utterance = self._open.get(id)
            if utterance is None or utterance.name != event.id:
                continue  # it was cancelled, or has moved away
            published += self._for_front(
                event if event.id == id else replace(event, id=id), utterance, now
            )
        self._publish(published)

    def _for_front(self, event: Event, utterance: OpenUtterance, now: float) -> list[Event]:
        """Return the events that the front gets for an engine's event."""
        if isinstance(event, Last):
            return self._ended(event, utterance, now)
        if isinstance(event, Started):
            return [utterance.started(event)]
        if isinstance(event, Waits):
            utterance.note_wait(event)
        else:
            if utterance.suspected and self._lost:
                self._reopen_soon()  # the next one may be tried
            utterance.heard(event, now)
        return [event]

    def _ended(self, event: Last, utterance: OpenUtterance, now: float) -> list[Event]:
        """Return the front's events for an end: none if another engine will continue."""
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

    def _publish(self, events: list[Event]) -> None:
        if events:
            assert self._deliver is not None, "start() comes before the first event"
            self._deliver(events)

    def _forget(self, id: str) -> OpenUtterance:
        self._lost.pop(id, None)
        utterance = self._open.pop(id)
        self._trials.ended(utterance)
        self._renamed.pop(utterance.name, None)
        return utterance

    # Reopening on another engine.

    def _reopen_soon(self, seconds: float = 0.0) -> None:
        """Schedule `_reopen`. A link that reports a failure is not yet ready for new commands."""
        if self._timer is not None:
            if seconds:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._reopen)

    def _reopen(self) -> None:
        """Reopen utterances without an engine if one is ready; end those that waited too long."""
        self._timer = None
        now, status = time.monotonic(), self._link.status()
        for id in list(self._lost):
            lost_at = self._open[id].lost_at
            assert lost_at is not None, f"{id} was never lost"
            if status.failure is not None or now - lost_at > self._patience:
                self._give_up(id)
            elif status.ready:
                self._reopen_one(id, now, status)
        if self._lost:
            self._reopen_soon(_RETRY_SECONDS)

    def _reopen_one(self, id: str, now: float, status: EngineStatus) -> None:
        """Reopen an utterance, unless it is suspected and another one is on trial, or an engine is
        silent, perhaps because of such a turn."""
        utterance = self._open[id]
        if utterance.suspected and (
            moves.is_silent(status) or not self._trials.begins(utterance, now)
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
        self._publish([utterance.failure])

    # Leaving engines that still run.

    def _check_soon(self, now: float) -> None:
        if self._check_timer is None:
            self._checked_at = now
            self._check_timer = asyncio.get_running_loop().call_later(
                _CHECK_SECONDS, self._check_engines
            )

    def _check_engines(self) -> None:
        """Move turns off engines that they should leave. If this process itself was suspended,
        wait: the engines' messages have not been read yet."""
        self._check_timer, now = None, time.monotonic()
        if now - self._checked_at < 2 * _CHECK_SECONDS:
            for group in self._link.stranded():
                self._relieve(group, now)
        if self._open:
            self._check_soon(now)

    def _relieve(self, group: Stranded, now: float) -> None:
        """Move turns off an engine, first those whose listeners have the least sound left."""
        found = (self._open.get(self._renamed.get(name, name)) for name in group.ids)
        due = [one for one in found if one is not None and self._is_due(one, group.why, now)]
        due.sort(key=lambda utterance: utterance.lead(now))
        for utterance in due[: group.free_capacity]:
            self._move(utterance, group.why, now)

    def _is_due(self, utterance: OpenUtterance, why: Why, now: float) -> bool:
        if why is Why.SILENT and (utterance.lost_at is not None or utterance.suspected):
            return False  # it may be what silences engines: it waits until this one ends
        return moves.is_due(
            why,
            lead=utterance.lead(now),
            waits=utterance.waits,
            age=now - utterance.opened_at,
            moved=utterance.moved,
        )

    def _move(self, utterance: OpenUtterance, why: Why, now: float) -> None:
        """Let another engine continue the turn; its old one gets a cancel and is ignored."""
        if why is Why.SILENT:
            if utterance.failures and not self._trials.begins(utterance, now):
                return  # it would become suspected while another one is on trial
            utterance.failures += 1
        utterance.lost_at = now  # it had an engine until now, also if nothing was heard from that
        utterance.failure = utterance.failure or Failed(
            utterance.id, "engine_restarted", _NOBODY, retryable=True
        )
        self._link.submit(Cancel(utterance.name))
        self._go_on(utterance, now, moved=True)
