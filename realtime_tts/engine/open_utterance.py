"""What is kept of an utterance while it is open: enough to open it again behind what was heard."""

from __future__ import annotations

from array import array

from msgspec.structs import replace

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.audio.speed import Speed
from realtime_tts.engine.link import (
    Append,
    Audio,
    Command,
    Failed,
    Finish,
    Lead,
    Open,
    Played,
    Spoken,
    Started,
    Waits,
)
from tts_scheduler import Playback

_SUSPECT = 2
"""A turn under which so many engines fail, one after another, may be the reason for it."""
_PROVEN_SECONDS = 1.0
"""Speech that one engine has to make of it for failures to be forgotten. A frame is not enough: the
step that takes a turn up makes one, also if the turn's next step ends the engine."""


class OpenUtterance:
    """One utterance of the front's, which some engine has, or none."""

    def __init__(self, command: Open, now: float) -> None:
        self.id = command.id
        self.name = command.id
        """Its id at the engine. It has a new one wherever it goes on, so that what an earlier
        engine still says of it concerns nobody."""
        self.failures = 0
        """Engines that failed under it since one of them spoke it for long enough."""
        self.failed_trials = 0
        """Of these, while it was on trial."""
        self.lost_at: float | None = None
        """When it lost its engine, if nothing was heard of it since."""
        self.failure: Failed | None = None
        """What is told if nobody goes on."""
        self.opened_at = now
        """When an engine was given it."""
        self.moved = False
        """That engine got it because it was to leave another one."""
        self.waits = False
        """Its text is used up."""
        self._command = command
        self._layout = command.spec.layout
        self._ids = array("i")
        self._finished = False
        self._openings = 0
        self._told = 0
        self._codes, self._tokens = bytearray(), bytearray()
        self._silent, self._held_seconds = 0, 0.0
        speed = Speed(command.spec.speed)
        self._playback = Playback.at_speed(
            speed,
            listener_free_at=now + command.listener_free_after,
            lookahead=speed.lookahead,
        )
        if (spoken := command.spoken) is not None:  # on another server
            self._codes += spoken.codes
            self._tokens += spoken.tokens
            self._silent, self._held_seconds = spoken.silent, spoken.held_seconds
            self._playback.resume(spoken.samples, spoken.unsent, now)
        self._made_before = self._playback.fed_samples

    @property
    def suspected(self) -> bool:
        """It may be the reason why engines fail."""
        return self.failures >= _SUSPECT

    @property
    def made(self) -> float:
        """Seconds of sound that came of the engine which was given it last."""
        return (self._playback.fed_samples - self._made_before) / self._playback.sample_rate

    def note(self, command: Command, now: float) -> None:
        """A command for it."""
        match command:
            case Append(ids=ids):
                self._ids.extend(ids)
                self.waits = False
            case Finish():
                self._finished = True
                self.waits = False
            case Played(seconds=seconds):
                self._playback.played(seconds, now)
            case Lead(lead_cap=lead_cap):
                self._command = replace(self._command, lead_cap=lead_cap)

    def heard(self, audio: Audio, now: float) -> None:
        """Sound of it is on its way to the listener."""
        self._codes += audio.codes
        self._tokens += audio.tokens
        self._silent, self._held_seconds = audio.silent, audio.held_seconds
        self._playback.feed(len(audio.pcm) // BYTES_PER_SAMPLE, now)
        self.lost_at, self.failure = None, None
        if self.made >= _PROVEN_SECONDS:
            self.failures, self.failed_trials = 0, 0

    def failed(self, event: Failed, now: float, *, tried: bool) -> None:
        """Its engine has failed. `tried`: while it was on trial."""
        if not self.waits:  # else no step was about it
            self.failures += 1
            self.failed_trials += tried
        self.failure, self.lost_at = self.failure or event, now

    def started(self, event: Started) -> Started:
        """The engine has begun with it; the same event, which says whether another one had it."""
        self._layout = event.layout
        moved, self._told = self._openings > self._told, self._openings
        return replace(event, moved=moved)

    def stands(self, event: Waits) -> None:
        """More text may be on its way already."""
        self.waits = event.text_tokens >= len(self._ids) and not self._finished

    def lead(self, now: float) -> float:
        """Seconds of sound that its listener has left."""
        return self._playback.lead(now)

    def again(self, now: float, *, moved: bool) -> list[Command]:
        """The commands that let an engine go on with it, at `now`, under its new name."""
        self._openings += 1
        self.name, self.opened_at, self.moved = f"{self.id}~{self._openings}", now, moved
        self._made_before = self._playback.fed_samples
        dry_at = self._playback.deadline()
        again: list[Command] = [
            replace(
                self._command,
                id=self.name,
                spec=replace(self._command.spec, layout=self._layout),
                listener_free_after=max(0.0, (now if dry_at is None else dry_at) - now),
                continues=True,
                spoken=self._spoken(),
            )
        ]
        if self._ids:
            again.append(Append(self.name, self._ids.tolist()))
        if self._finished:
            again.append(Finish(self.name))
        return again

    def _spoken(self) -> Spoken | None:
        if not self._codes:
            return None
        playback = self._playback
        samples, unsent = playback.fed_samples, max(0, playback.unsent_samples)
        codes, tokens = bytes(self._codes), bytes(self._tokens)
        return Spoken(codes, samples, unsent, self._silent, self._held_seconds, tokens)
