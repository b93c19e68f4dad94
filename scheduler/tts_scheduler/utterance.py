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
from typing import NamedTuple

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
"""Which phases may follow each phase."""


class Stats(NamedTuple):
    """A snapshot of one utterance. Durations in seconds.

    `held_seconds`: time it could not go on for lack of text. `underruns` and `late_seconds` are
    computed from the model of the listener (`Playback`); `starved_underruns` are those that late
    text explains.
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
    """What another engine has spoken of an utterance: `frames`, which gave `samples` for the
    listener, the last `unsent` of which wait for their packet to be full."""

    frames: int
    samples: int
    unsent: int = 0
    held_seconds: float = 0.0


@dataclass(slots=True, eq=False)
class Utterance:
    """The state of one utterance. `order` counts openings; `lead_cap` is its own, already checked.

    `prompt_tokens`: length of its prompt without text. `listener_free_at`: until then the listener
    still hears the previous turn. `text_needed`: text tokens that the prompt takes with frame 0, if
    there are that many; at 0 and less, 1 - `text_needed` frames need no text. `silent_start`: how
    many first frames need not be made, if there is text for them. `continues`: it continues a turn
    that was spoken in part, so it goes before all new ones and never times out. `share`: of a full
    machine, for its `account` among others. A queued turn of an account that has its share may be
    ended for another account's turn (`Scheduler.expire`).

    `text_tokens` counts frames that have their text: `received`, less what goes into the prompt
    beyond the token of frame 0.
    """

    id: str
    order: int
    prompt_tokens: int
    layout: Layout
    opened_at: float
    lead_cap: float
    listener_free_at: float | None
    playback: Playback
    text_needed: int = 1
    silent_start: int = 0
    continues: bool = False
    speed: float = 1.0  # seconds of speech that its listener hears in one second
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
        """Enter `phase`; only the moves in `MOVES` are legal."""
        assert phase in MOVES[self.phase], f"{self.id}: no way from {self.phase} to {phase}"
        self.phase = phase

    @property
    def extra(self) -> float:
        """Capacity it needs beyond one turn: faster speech takes more frames. Slower speech takes
        fewer, but a slot all the same."""
        return max(0.0, self.speed - 1.0)

    @property
    def can_go_on(self) -> bool:
        """Whether the next frame has its text: token k for frame k, or the end of the text."""
        return self.finished or self.frames < self.text_tokens

    @property
    def on_air_elsewhere(self) -> bool:
        """Whether another engine has spoken part of it, and it has no slot here yet."""
        return self.slot < 0 and self.frames > 0

    @property
    def full_positions(self) -> int:
        """Positions that a prompt with all the text received would take."""
        return prompt_positions(self.prompt_tokens, self.received)

    def resume(self, spoken: Spoken, now: float) -> None:
        """Continue after what another engine has spoken."""
        self.frames, self.held_seconds = spoken.frames, spoken.held_seconds
        self.playback.resume(spoken.samples, spoken.unsent, now)

    def receive(self, tokens: int, now: float) -> None:
        """Add text, or (0 tokens) react to the end of it.

        The utterance can start once its next frame has its text, or once there is some text and its
        end is known.
        """
        self.received += tokens
        self.text_tokens = max(0, self.received - self.text_needed + 1) if self.received else 0
        ready = self.text_tokens > self.frames or (self.finished and self.received > 0)
        if ready and self.first_text_at is None:
            self.first_text_at = now
        self.note_text(now)

    def note_text(self, now: float) -> None:
        """Start or stop the clock of being held; called after any change of text or frames."""
        goes_on = self.finished or self.frames < self.text_tokens  # inlined can_go_on
        if goes_on or self.phase is not Phase.SPEAKING:
            if self.held_since is None:
                return
            self.held_seconds += now - self.held_since
            self.held_since = None
            self.resumed_at = now
        elif self.held_since is None:
            self.held_since = now

    def stats(self, now: float | None = None) -> Stats:
        """Return a snapshot; a hold that is not over counts up to `now`, if given."""
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
