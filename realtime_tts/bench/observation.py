"""What was observed of one turn, and of one pass over a level; and the figures that follow.

Times are in seconds.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from realtime_tts.client import TurnResult, Word
from realtime_tts.protocol.messages import SAMPLE_RATE
from tts_scheduler.playback import Playback
from tts_scheduler.report import Trace, TurnReport, measure

clock = time.perf_counter

Schedule = Sequence[tuple[float, str]]
"""Pairs of (seconds to wait, text delta), in order."""

AUDIBLE_DBFS = -45.0
_THRESHOLD = round(32_768 * 10 ** (AUDIBLE_DBFS / 20))


def samples_of(pcm: bytes) -> array[int]:
    """Return the samples of s16le."""
    samples = array("h", pcm)
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


class Onset:
    """Finds the first audible sample of a turn.

    A model may begin with silence, which makes the first packet fast and the listener wait. Costs
    nothing once the onset is found.
    """

    def __init__(self) -> None:
        self.sample: int | None = None
        """Position of the first sample above -45 dBFS in the turn; None while there is none."""
        self._seen = 0

    def feed(self, packet: bytes) -> None:
        """Look at the next packet (s16le)."""
        if self.sample is not None:
            return
        samples = samples_of(packet)
        # max and min take 30 us for 2,048 samples; only one packet per turn is searched.
        if samples and (max(samples) > _THRESHOLD or min(samples) < -_THRESHOLD):
            offset = next(i for i, sample in enumerate(samples) if abs(sample) > _THRESHOLD)
            self.sample = self._seen + offset
        self._seen += len(samples)


@dataclass(slots=True)
class Observation:
    """One turn, seen from the client.

    `error`: the code of what ended it early; `retry_after`: seconds to wait, if it was refused for
    lack of capacity. `interrupt_seconds`: from the interrupt to the server's answer, after which no
    byte of the turn comes. `last_byte_seconds`: from the interrupt to the turn's last byte, 0 if
    none came after it; None if the turn was not interrupted while it was on air. `start_lag`: by
    how much the load generator itself began the turn too late, if it was due at a time. `sound`:
    everything received, if it is kept; `words`: the server's, if the session has them.
    """

    text_chars: int
    trace: Trace
    onset: Onset = field(default_factory=Onset)
    result: TurnResult | None = None
    layout: str | None = None
    error: str | None = None
    retry_after: float = 0.0
    interrupt_seconds: float | None = None
    last_byte_seconds: float | None = None
    start_lag: float | None = None
    sound: bytearray | None = None
    words: tuple[Word, ...] = ()

    @classmethod
    def failed(cls, text_chars: int, code: str) -> Observation:
        """Return the observation of a turn that never began, now."""
        return cls(text_chars, Trace(asked_at=clock()), error=code)

    def packet(self, data: bytes, at: float) -> None:
        """Record a packet that arrived at time `at`."""
        self.trace.packet(at, len(data) // 2)
        self.onset.feed(data)
        if self.sound is not None:
            self.sound += data

    @property
    def complete(self) -> bool:
        """Whether the whole text was spoken, so that the turn's speech can be counted."""
        return self.error is None and self.interrupt_seconds is None and bool(self.trace.packets)

    @property
    def report(self) -> TurnReport:
        """Time to first audio, underruns and so on, as `tts_scheduler.report` defines them."""
        if self.result is not None:
            self.trace.held_seconds = self.result.held_ms / 1000
        return measure(self.trace, SAMPLE_RATE)

    @property
    def audible_ttfa(self) -> float | None:
        """Seconds from the first text delta to the first sample above -45 dBFS at the ear; None if
        there was none.

        The listener plays from the first packet on; the sample sounds then, or when its own packet
        arrives, if that is later.
        """
        if self.onset.sample is None:
            return None
        first_at = self.trace.packets[0][0]
        before = 0
        for at, samples in self.trace.packets:
            if self.onset.sample < before + samples:
                in_packet = (self.onset.sample - before) / SAMPLE_RATE
                sounds_at = max(first_at + self.onset.sample / SAMPLE_RATE, at + in_packet)
                return sounds_at - self.trace.asked_at
            before += samples
        return None

    @property
    def worst_gap(self) -> float:
        """Seconds of the longest silence that late packets put into the speech."""
        playback = Playback(SAMPLE_RATE)
        return max((playback.sent(samples, at) for at, samples in self.trace.packets), default=0.0)

    @property
    def heard_until(self) -> float:
        """When the listener has heard everything that was received."""
        playback = Playback(SAMPLE_RATE)
        for at, samples in self.trace.packets:
            playback.sent(samples, at)
        return playback.runs_out_at or self.trace.asked_at

    @property
    def speed(self) -> float | None:
        """Seconds from the first text to the last packet, per second of audio; None without audio.

        It is the stream's own real-time factor, if the text came whole and the server was not held
        back.
        """
        audio = sum(samples for _, samples in self.trace.packets) / SAMPLE_RATE
        return (self.trace.packets[-1][0] - self.trace.asked_at) / audio if audio else None


@dataclass(slots=True)
class Observed:
    """What one pass over a level brought. `seconds`: from the first text to the last packet."""

    turns: list[Observation]
    seconds: float
    sessions: int
    """The most turns that ran at the same time."""
    fillers: list[Observation] = field(default_factory=list)
    """Unpaced pass only: extra turns of sessions that had finished their own, spoken to keep the
    load constant until the last session is done."""
    busy: tuple[float, float] | None = None
    """Unpaced pass only: from when all sessions had sound until the last counted turn was over."""
    late: list[float] = field(default_factory=list)
    """How late timers woke, in all processes; see `Lateness`."""
    cpu: float = 0.0
    """Share of one core that the busiest process used."""
    processes: int = 1

    @property
    def busy_audio_rate(self) -> float | None:
        """Seconds of audio received per second of `busy`; None if that has no length."""
        if self.busy is None or self.busy[1] <= self.busy[0]:
            return None
        begin, end = self.busy
        samples = sum(
            count
            for turn in (*self.turns, *self.fillers)
            for at, count in turn.trace.packets
            if begin < at <= end
        )
        return samples / SAMPLE_RATE / (end - begin)


def merged(parts: Sequence[Observed], sessions: int) -> Observed:
    """Return what all processes observed; their clocks are one (`time.perf_counter` counts since
    boot).

    `sessions`: number of sessions of the level, or 0 where turns arrive and any number may run.
    """
    turns = [turn for part in parts for turn in part.turns]
    windows = [part.busy for part in parts if part.busy is not None]
    return Observed(
        turns,
        span(turns),
        sessions or most_at_once(turns),
        fillers=[turn for part in parts for turn in part.fillers],
        busy=(max(w[0] for w in windows), max(w[1] for w in windows)) if windows else None,
        late=[value for part in parts for value in part.late],
        cpu=max(part.cpu for part in parts),
        processes=len(parts),
    )


def busy_window(sessions: Sequence[Sequence[Observation]]) -> tuple[float, float] | None:
    """Return `Observed.busy` for the counted turns of each session; None if there was no sound."""
    packets = [
        [at for turn in turns for at, _ in turn.trace.packets]
        for turns in sessions
        if any(turn.trace.packets for turn in turns)
    ]
    if not packets:
        return None
    return max(times[0] for times in packets), max(times[-1] for times in packets)


def span(turns: Sequence[Observation]) -> float:
    """Return the seconds from the first text to the last packet."""
    ends = [turn.trace.packets[-1][0] for turn in turns if turn.trace.packets]
    return max(ends) - min(turn.trace.asked_at for turn in turns) if ends else 0.0


def most_at_once(turns: Sequence[Observation]) -> int:
    """Return the most turns that ran at the same time, from text to last packet."""
    running = most = 0
    heard = [turn.trace for turn in turns if turn.trace.packets]
    changes = [(trace.asked_at, 1) for trace in heard]
    changes += [(trace.packets[-1][0], -1) for trace in heard]
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most


def left(seen: Observation) -> float:
    """Return the seconds until the listener has heard the turn; 0 if it was cut off or failed."""
    heard = seen.interrupt_seconds is None and seen.error is None
    return max(0.0, seen.heard_until - clock()) if heard else 0.0
