"""Measures of real-time speech, computed from the packets seen of each turn.

Used by the simulator, where time is virtual, and by the bench, which sees packets arrive through a
socket. All times are seconds on one clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tts_scheduler.playback import SAMPLE_RATE, Playback


@dataclass(slots=True)
class Trace:
    """The events of one turn, in the order in which they were seen.

    `asked_at`: the first text delta. `listener_free_at`: when the listener has heard the turn
    before. `client_buffer`: the listener starts this many seconds after the first packet.
    `starved`: number of late packets that late text explains, where that is known.
    """

    asked_at: float
    listener_free_at: float | None = None
    client_buffer: float = 0.0
    packets: list[tuple[float, int]] = field(default_factory=list)
    """(time, samples) of each packet."""
    reason: str = ""
    held_seconds: float = 0.0
    starved: int = 0

    def packet(self, at: float, samples: int) -> None:
        """Record a packet that was sent or received."""
        self.packets.append((at, samples))


@dataclass(frozen=True, slots=True)
class TurnReport:
    """The measures of one turn.

    `ttfa`: seconds from the first text delta to the first packet, None without sound. `underruns`:
    packets after their playback deadline; the first packet has none.
    """

    ttfa: float | None
    audio_seconds: float
    packets: int
    underruns: int
    starved: int
    late_seconds: float
    held_seconds: float

    @property
    def viable(self) -> bool:
        """Whether the listener heard no gap."""
        return self.underruns == 0

    @property
    def kept(self) -> bool:
        """Whether the listener heard no gap except for lack of text."""
        return self.underruns <= self.starved


def measure(trace: Trace, sample_rate: int = SAMPLE_RATE) -> TurnReport:
    """Return the measures of a turn, by replaying it through `Playback`."""
    free_at = trace.listener_free_at
    if trace.packets and trace.client_buffer:
        plays_at = trace.packets[0][0] + trace.client_buffer
        free_at = plays_at if free_at is None else max(free_at, plays_at)
    playback = Playback(sample_rate, listener_free_at=free_at)
    for at, samples in trace.packets:
        playback.sent(samples, at)
    first = playback.first_sent_at
    return TurnReport(
        ttfa=None if first is None else first - trace.asked_at,
        audio_seconds=playback.sent_seconds,
        packets=playback.packets,
        underruns=playback.underruns,
        starved=trace.starved,
        late_seconds=playback.late_seconds,
        held_seconds=trace.held_seconds,
    )


@dataclass(frozen=True, slots=True)
class Percentiles:
    """50th, 95th and 99th percentile."""

    p50: float
    p95: float
    p99: float


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of `values` lie, interpolated between
    neighbours.

    Raises ValueError without values, or for another share.
    """
    if not values or not 0.0 <= share <= 1.0:
        raise ValueError(f"a share from 0 to 1 of at least one value, got {share} of {len(values)}")
    ordered = sorted(values)
    index = share * (len(ordered) - 1)
    below = int(index)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (index - below)


def percentiles(values: Sequence[float]) -> Percentiles | None:
    """Return p50, p95 and p99, or None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return Percentiles(*(percentile(ordered, share) for share in (0.50, 0.95, 0.99)))


@dataclass(frozen=True, slots=True)
class Summary:
    """The measures of many turns. Shares are from 0 to 1, and 1 where there is nothing to count.

    `viability`: share of packets, after each turn's first, that were in time. `viable_turns`: share
    of turns without a gap. `kept_turns`: share without a gap that the text does not explain. `rtf`:
    seconds of computing per second of audio, None if either is unknown.
    """

    turns: int
    ttfa: Percentiles | None
    viability: float
    viable_turns: float
    kept_turns: float
    underruns: int
    starved: int
    late_seconds: float
    held: Percentiles | None
    audio_seconds: float
    rtf: float | None


def summarise(reports: Iterable[TurnReport], busy_seconds: float | None = None) -> Summary:
    """Summarise the turns that made sound. `busy_seconds`: how long the machine computed."""
    turns = [report for report in reports if report.packets]
    audio = sum(turn.audio_seconds for turn in turns)
    underruns = sum(turn.underruns for turn in turns)
    return Summary(
        turns=len(turns),
        ttfa=percentiles([turn.ttfa for turn in turns if turn.ttfa is not None]),
        viability=1.0 - _share(underruns, sum(turn.packets - 1 for turn in turns)),
        viable_turns=1.0 - _share(sum(not turn.viable for turn in turns), len(turns)),
        kept_turns=1.0 - _share(sum(not turn.kept for turn in turns), len(turns)),
        underruns=underruns,
        starved=sum(turn.starved for turn in turns),
        late_seconds=sum(turn.late_seconds for turn in turns),
        held=percentiles([turn.held_seconds for turn in turns]),
        audio_seconds=audio,
        rtf=None if busy_seconds is None or not audio else busy_seconds / audio,
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
