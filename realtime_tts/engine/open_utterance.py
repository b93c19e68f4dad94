"""What is kept of an utterance while it is open: enough to reopen it after what was heard."""

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
"""A turn under which this many engines fail, one after another, may be the cause."""
_PROVEN_SECONDS = 1.0
"""Seconds of speech that one engine has to make of a turn for its failures to be forgotten. A frame
is not enough: the step that takes a turn up makes one, even if the next step ends the engine."""


class OpenUtterance:
    """One utterance of the front's, which some engine has, or none."""

    def __init__(self, command: Open, now: float) -> None:
        self.id = command.id
        self.name = command.id
        """The utterance's id at the engine, a new one wherever it continues, so that late events of
        an earlier engine match no utterance."""
        self.failures = 0
        """Number of engines that failed under it since one of them spoke it for long enough."""
        self.failed_trials = 0
        """How many of those failures happened while it was on trial (`Trials`)."""
        self.lost_at: float | None = None
        """When it lost its engine; None once sound of it has arrived again."""
        self.failure: Failed | None = None
        """The event for the front if no engine continues it."""
        self.opened_at = now
        """When its present engine got it."""
        self.moved = False
        """Whether its present engine got it because it had to leave another one."""
        self.waits = False
        """Whether its text is used up, so that it waits for more."""
        self._command = command
        self._layout = command.spec.layout
        self._ids = array("i")
        self._finished = False
        self._openings = 0
        self._openings_reported = 0
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
        """Whether it may be the reason why engines fail."""
        return self.failures >= _SUSPECT

    @property
    def made(self) -> float:
        """Seconds of sound received from the engine that got it last."""
        return (self._playback.fed_samples - self._made_before) / self._playback.sample_rate

    def note(self, command: Command, now: float) -> None:
        """Record a command for it."""
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
        """Record sound of it that is on its way to the listener."""
        self._codes += audio.codes
        self._tokens += audio.tokens
        self._silent, self._held_seconds = audio.silent, audio.held_seconds
        self._playback.feed(len(audio.pcm) // BYTES_PER_SAMPLE, now)
        self.lost_at, self.failure = None, None
        if self.made >= _PROVEN_SECONDS:
            self.failures, self.failed_trials = 0, 0

    def failed(self, event: Failed, now: float, *, tried: bool) -> None:
        """Record that its engine has failed. `tried`: while it was on trial."""
        if not self.waits:  # otherwise no step worked on it
            self.failures += 1
            self.failed_trials += tried
        self.failure, self.lost_at = self.failure or event, now

    def started(self, event: Started) -> Started:
        """Record that the engine has begun with it; return the event, with `moved` set if another
        engine had it before."""
        self._layout = event.layout
        moved, self._openings_reported = self._openings > self._openings_reported, self._openings
        return replace(event, moved=True) if moved else event

    def note_wait(self, event: Waits) -> None:
        """Record that the text that has reached the engine is used up; more may be on its way."""
        self.waits = event.text_tokens >= len(self._ids) and not self._finished

    def lead(self, now: float) -> float:
        """Return the seconds of sound that its listener has left."""
        return self._playback.lead(now)

    def again(self, now: float, *, moved: bool) -> list[Command]:
        """Return the commands that let an engine continue it, at `now`, under its new name."""
        self._openings += 1
        self.name, self.opened_at, self.moved = f"{self.id}~{self._openings}", now, moved
        self._made_before = self._playback.fed_samples
        dry_at = self._playback.runs_out_at
        # `begun`: its voice was there when it was opened, and may have been deleted since.
        spec = replace(self._command.spec, layout=self._layout, begun=True)
        again: list[Command] = [
            replace(
                self._command,
                id=self.name,
                spec=spec,
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
