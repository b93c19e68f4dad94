"""Utterance: one stream of text in and audio out, as far as the scheduler knows it.

    QUEUED ──> WAITING ──> SPEAKING ──> ENDED        (and to ENDED from anywhere)

A waiting utterance is admitted and has no slot yet. A speaking one owns a slot; it is *held* while
its next frame lacks its text token, *parked* while its listener has plenty to hear, and *swapped*
while its keys and values are in host memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf

from tts_scheduler.plan import Layout, prompt_positions
from tts_scheduler.playback import Playback


class Phase(StrEnum):
    """Where an utterance is in its life."""

    QUEUED = "queued"
    WAITING = "waiting"
    SPEAKING = "speaking"
    ENDED = "ended"


MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.QUEUED: frozenset({Phase.WAITING, Phase.ENDED}),
    Phase.WAITING: frozenset({Phase.SPEAKING, Phase.ENDED}),
    Phase.SPEAKING: frozenset({Phase.ENDED}),
    Phase.ENDED: frozenset(),
}
"""Which phase may follow which."""


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot of one utterance. Durations in seconds.

    `held_seconds`: time it could not go on for lack of text. `underruns` and `late_seconds` are
    the mirror's view of the listener; `starved_underruns` are those that late text explains.
    """

    phase: Phase
    layout: Layout
    frames: int
    sent_seconds: float
    held_seconds: float
    underruns: int
    starved_underruns: int
    late_seconds: float


@dataclass(frozen=True, slots=True)
class Spoken:
    """What another engine has spoken of an utterance: `frames`, which came to `samples` for the
    listener, the last `unsent` of which wait for their packet to be full."""

    frames: int
    samples: int
    unsent: int = 0
    held_seconds: float = 0.0


@dataclass(slots=True, eq=False)
class Utterance:
    """State of one utterance. `order` counts openings; `lead_cap` is its own, already checked.

    `prompt_tokens`: length of its prompt without text. `listener_free_at`: until then the listener
    still hears the previous turn. `text_needed`: text tokens that the prompt takes with frame 0, if
    there are so many; 0 and less: so many further frames need no text of the caller's. `continues`:
    of a turn that was spoken in part; it goes before all that are new, and waits as long as it
    takes. `share`: of a full machine, that its `account` has beside other accounts; a turn of one
    that has its share may be ended in the queue for it, as `Scheduler.expire` tells.

    `text_tokens` counts frames that have their text: what was `received`, less what goes into the
    prompt beyond the token of frame 0.
    """

    id: str
    order: int
    prompt_tokens: int
    layout: Layout
    opened_at: float
    lead_cap: float
    min_start_tokens: int
    listener_free_at: float | None
    playback: Playback
    text_needed: int = 1
    continues: bool = False
    speed: float = 1.0  # its listener plays so many seconds of it in one
    account: str = ""
    share: float = 1.0
    phase: Phase = Phase.QUEUED
    admitted_at: float = 0.0
    # text
    received: int = 0
    text_tokens: int = 0
    first_text_at: float | None = None
    finished: bool = False
    # speech
    slot: int = -1
    frames: int = 0
    codec_pending: int = 0  # frames made that have not been through the codec
    codec_runs: int = 0
    parked: bool = False
    served: int = 0  # number of the last step that worked on it
    # memory
    prompt_positions: int = 0
    frame_limit: float = inf  # frames that its pages have room for; inf: memory without a limit
    swapped: bool = False  # its keys and values are in host memory
    # waiting for text
    held_since: float | None = None
    held_seconds: float = 0.0
    resumed_at: float | None = None
    starved_underruns: int = 0

    def move(self, phase: Phase) -> None:
        """Enter `phase`; only the moves of the table are legal."""
        assert phase in MOVES[self.phase], f"{self.id}: no way from {self.phase} to {phase}"
        self.phase = phase

    @property
    def extra(self) -> float:
        """How many more turns it is like: faster speech takes more frames. Slower takes fewer, but
        a slot all the same."""
        return max(0.0, self.speed - 1.0)

    @property
    def can_go_on(self) -> bool:
        """The next frame has its text: token k for frame k, or nothing more will come."""
        return self.finished or self.frames < self.text_tokens

    @property
    def on_air_elsewhere(self) -> bool:
        """Another engine has spoken of it, and its listener hears that; it has no slot here yet."""
        return self.slot < 0 and self.frames > 0

    @property
    def full_positions(self) -> int:
        """Positions of a prompt with all the text there is."""
        return prompt_positions(self.prompt_tokens, self.received)

    def resume(self, spoken: Spoken, now: float) -> None:
        """Another engine has spoken so much of it."""
        self.frames, self.held_seconds = spoken.frames, spoken.held_seconds
        self.playback.resume(spoken.samples, spoken.unsent, now)

    def receive(self, tokens: int, now: float) -> None:
        """Text came, or (0 tokens) the word that none will come any more.

        The utterance can start once its next frame has its text, or has all the text there is.
        """
        self.received += tokens
        self.text_tokens = max(0, self.received - self.text_needed + 1) if self.received else 0
        ready = self.text_tokens > self.frames or (self.finished and self.received > 0)
        if ready and self.first_text_at is None:
            self.first_text_at = now
        self.note_text(now)

    def note_text(self, now: float) -> None:
        """After any change of text or frames: start or stop the clock of being held."""
        goes_on = self.finished or self.frames < self.text_tokens  # can_go_on, but faster
        if goes_on or self.phase is not Phase.SPEAKING:
            if self.held_since is None:
                return
            self.held_seconds += now - self.held_since
            self.held_since = None
            self.resumed_at = now
        elif self.held_since is None:
            self.held_since = now

    def stats(self, now: float | None = None) -> Stats:
        """Snapshot; the time of a hold that is not over counts up to `now`, if given."""
        held = self.held_seconds
        if self.held_since is not None and now is not None:
            held += now - self.held_since
        playback = self.playback
        return Stats(
            phase=self.phase,
            layout=self.layout,
            frames=self.frames,
            sent_seconds=playback.sent_seconds,
            held_seconds=held,
            underruns=playback.underruns,
            starved_underruns=self.starved_underruns,
            late_seconds=playback.late_seconds,
        )
