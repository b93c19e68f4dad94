"""What one pass over a level brought, and the parts of several client processes put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from realtime_tts.bench.observation import SAMPLE_RATE, Observation


@dataclass(slots=True)
class Observed:
    """What one pass over a level brought. `seconds`: from the first text to the last packet."""

    turns: list[Observation]
    seconds: float
    sessions: int
    """The most turns that ran at the same time."""
    fillers: list[Observation] = field(default_factory=list)
    """Unpaced: turns of sessions that were done, spoken so that the others stay among as many."""
    busy: tuple[float, float] | None = None
    """Unpaced: from when all sessions had sound until the last turn that counts was over."""
    late: list[float] = field(default_factory=list)
    """How late timers woke, of every process; see `Lateness`."""
    cpu: float = 0.0
    """Share of one core of the busiest process."""
    processes: int = 1

    @property
    def busy_audio_rate(self) -> float | None:
        """Seconds of audio that came per second of `busy`; None if it is no time at all."""
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
    """What all processes saw; their clocks are one (`time.perf_counter` counts since boot).

    `sessions`: of the level, or 0 where turns arrive and as many run as happen to.
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
    """Find `Observed.busy` in the counted turns of each session; None if there was no sound."""
    packets = [
        [at for turn in turns for at, _ in turn.trace.packets]
        for turns in sessions
        if any(turn.trace.packets for turn in turns)
    ]
    if not packets:
        return None
    return max(times[0] for times in packets), max(times[-1] for times in packets)


def span(turns: Sequence[Observation]) -> float:
    """Seconds from the first text to the last packet."""
    ends = [turn.trace.packets[-1][0] for turn in turns if turn.trace.packets]
    return max(ends) - min(turn.trace.asked_at for turn in turns) if ends else 0.0


def most_at_once(turns: Sequence[Observation]) -> int:
    """How many turns ran at the same time, from text to last packet, at most."""
    running = most = 0
    for _, change in sorted(_changes(turns)):
        running += change
        most = max(most, running)
    return most


def _changes(turns: Sequence[Observation]) -> Iterator[tuple[float, int]]:
    for turn in turns:
        if turn.trace.packets:
            yield turn.trace.asked_at, 1
            yield turn.trace.packets[-1][0], -1
