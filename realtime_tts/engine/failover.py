"""Failover: turns survive their engine.

All that an engine needs to go on with an utterance is small: its settings, the token ids of its
text and the codes that were heard of it, 400 bytes a second. They are kept here while it is open.
When its engine is killed, hangs or raises, another one with the same checkpoint, or the same one
after its restart, is given them and goes on with the next frame. Nothing is heard twice, nothing is
lost: sound that was made and had not arrived is made again.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable

from msgspec.structs import replace

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Cancel,
    Command,
    EngineLink,
    EngineStatus,
    Event,
    Failed,
    Finish,
    Last,
    Lead,
    Open,
    Played,
    Refused,
    Spoken,
    Started,
)
from realtime_tts.errors import EngineError
from tts_scheduler import Playback

_LOST = frozenset({"engine_restarted", EngineError.code})
"""Codes of failures that are the engine's, and need not be the turn's."""
_SUSPECT, _MOST_TRIALS = 2, 3
"""A turn under which so many engines fail, one after another and without a new frame, may be the
reason for it: it is tried alone. One whose trials end so as well is the reason, and ends."""
_RETRY_SECONDS = 0.05
_TRIAL_SECONDS = 1.0


class OpenUtterance:
    """What is kept of an utterance: enough to open it again behind all that was heard of it."""

    def __init__(self, command: Open, now: float) -> None:
        self.failures = 0
        """Engines that failed under it since its last frame."""
        self.failed_trials = 0
        """Of these, while it was tried alone."""
        self.lost_at: float | None = None
        """When the last of them did."""
        self.failure: Failed | None = None
        """What the first of them said: what is told if nobody goes on."""
        self.layout = command.spec.layout
        """The one that was used, once it has started."""
        self._command = command
        self._ids = array("i")
        self._finished = False
        self._codes = bytearray()
        self._silent, self._held_seconds = 0, 0.0
        self._playback = Playback(listener_free_at=now + command.listener_free_after)
        if (spoken := command.spoken) is not None:  # on another server
            self._codes += spoken.codes
            self._silent, self._held_seconds = spoken.silent, spoken.held_seconds
            self._playback.resume(spoken.samples, spoken.unsent, now)

    def note(self, command: Command, now: float) -> None:
        """A command for it."""
        match command:
            case Append(ids=ids):
                self._ids.extend(ids)
            case Finish():
                self._finished = True
            case Played(seconds=seconds):
                self._playback.played(seconds, now)
            case Lead(lead_cap=lead_cap):
                self._command = replace(self._command, lead_cap=lead_cap)

    def heard(self, audio: Audio, now: float) -> None:
        """Sound of it is on its way to the listener."""
        self._codes += audio.codes
        self._silent, self._held_seconds = audio.silent, audio.held_seconds
        self._playback.feed(len(audio.pcm) // BYTES_PER_SAMPLE, now)
        self.failures, self.failed_trials = 0, 0
        self.lost_at, self.failure = None, None

    def again(self, now: float) -> list[Command]:
        """The commands that let an engine go on with it, at `now`."""
        id, playback = self._command.id, self._playback
        dry_at = playback.deadline()
        again: list[Command] = [
            replace(
                self._command,
                spec=replace(self._command.spec, layout=self.layout),
                listener_free_after=max(0.0, (now if dry_at is None else dry_at) - now),
                continues=True,
                spoken=self._spoken(),
            )
        ]
        if self._ids:
            again.append(Append(id, self._ids.tolist()))
        if self._finished:
            again.append(Finish(id))
        return again

    def _spoken(self) -> Spoken | None:
        if not self._codes:
            return None
        playback = self._playback
        samples = playback.sent_samples + playback.unsent_samples
        codes, unsent = bytes(self._codes), playback.unsent_samples
        return Spoken(codes, samples, unsent, self._silent, self._held_seconds)


class Failover:
    """An `EngineLink` over another one, which tells it of failures and is asked again.

    `patience`: seconds that a turn waits for an engine; then it fails as it would have at first.
    """

    def __init__(self, link: EngineLink, patience: float) -> None:
        self._link, self._patience = link, patience
        self._open: dict[str, OpenUtterance] = {}
        self._lost: dict[str, None] = {}
        """Those that no engine has, in the order in which they were lost."""
        self._trial: tuple[str, float] | None = None
        """Who is tried alone, and until when."""
        self._deliver: Callable[[list[Event]], None] | None = None
        self._timer: asyncio.Handle | None = None

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
        passed = [command for command in commands if self._note(command, now)]
        if passed:
            self._link.submit(*passed)

    def info_for(self, spec: UtteranceSpec) -> EngineInfo:
        return self._link.info_for(spec)

    def check(self, spec: UtteranceSpec) -> None:
        self._link.check(spec)

    def status(self) -> EngineStatus:
        return self._link.status()

    async def stop(self) -> None:
        """Stop the link; those that no engine has fail as they would have at first."""
        if self._timer is not None:
            self._timer.cancel()
        for id in list(self._lost):
            self._give_up(id)
        await self._link.stop()

    # Commands and events.

    def _note(self, command: Command, now: float) -> bool:
        """Whether an engine is to hear of it now."""
        id = command.id
        if isinstance(command, Open):
            self._open[id] = OpenUtterance(command, now)
            return True
        if isinstance(command, Cancel):
            waits = id in self._lost
            return self._forget(id) is not None and not waits
        utterance = self._open.get(id)
        if utterance is None:
            return False  # it ended while the command was on its way
        utterance.note(command, now)
        return id not in self._lost

    def _take(self, events: list[Event]) -> None:
        now = time.monotonic()
        told: list[Event] = []
        for event in events:
            utterance = self._open.get(event.id)
            if utterance is not None:
                told += self._told(event, utterance, now)
        self._tell(told)

    def _told(self, event: Event, utterance: OpenUtterance, now: float) -> list[Event]:
        """What the front hears of an event."""
        tried = self._trial is not None and event.id == self._trial[0]
        if tried:
            self._trial = None
            self._reopen_soon()
        if isinstance(event, Audio):
            utterance.heard(event, now)
        elif isinstance(event, Started):
            utterance.layout = event.layout
            return [replace(event, moved=utterance.lost_at is not None)]
        elif isinstance(event, Last):
            if self._is_lost(event, utterance, tried, now):
                return []
            self._forget(event.id)
        return [event]

    def _is_lost(self, event: Last, utterance: OpenUtterance, tried: bool, now: float) -> bool:
        """Whether the engine has lost it, and another one is to go on."""
        if isinstance(event, Failed) and event.code in _LOST:
            utterance.failures += 1
            utterance.failed_trials += tried
            if self._patience <= 0 or utterance.failed_trials >= _MOST_TRIALS:
                return False
            utterance.failure = utterance.failure or event
            utterance.lost_at = now
        elif not (isinstance(event, Refused) and utterance.lost_at is not None):
            return False
        self._lost[event.id] = None
        self._reopen_soon(0.0 if isinstance(event, Failed) else _RETRY_SECONDS)
        return True

    def _tell(self, events: list[Event]) -> None:
        if events:
            assert self._deliver is not None, "start() comes before the first event"
            self._deliver(events)

    def _forget(self, id: str) -> OpenUtterance | None:
        self._lost.pop(id, None)
        return self._open.pop(id, None)

    # Moving.

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
                self._place(id, now)
        if self._lost:
            self._reopen_soon(_RETRY_SECONDS)

    def _place(self, id: str, now: float) -> None:
        """One that is suspected has an engine alone, or it would take the others along."""
        utterance = self._open[id]
        if utterance.failures >= _SUSPECT:
            if self._trial is not None and now < self._trial[1]:
                return
            self._trial = id, now + _TRIAL_SECONDS
        del self._lost[id]
        self._link.submit(*utterance.again(now))

    def _give_up(self, id: str) -> None:
        utterance = self._forget(id)
        assert utterance is not None and utterance.failure is not None, f"{id} has an engine"
        self._tell([utterance.failure])
