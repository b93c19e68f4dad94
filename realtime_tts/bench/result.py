"""The figures of a level, in plain types that go into JSON as they are.

Names that end in `_ms` are in milliseconds, shares go from 0 to 1, and None means unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from realtime_tts.bench.observation import Observation, Observed
from realtime_tts.bench.settings import Level
from realtime_tts.protocol.messages import SAMPLE_RATE
from tts_scheduler.report import measure, percentiles, summarise

_LINE = re.compile(
    r'^tts_engine_step_rows_seconds_(?P<what>count|sum)\{kind="(?P<kind>\w+)",rows="(?P<rows>\d+)"\}'
    r" (?P<value>\S+)$",
    re.MULTILINE,
)

CLIENT_BUFFER = 0.1
"""Seconds that many listeners' players wait before they begin."""

Steps = Mapping[tuple[int, str], tuple[float, float]]
"""Number of steps and their total seconds, by (rows, kind)."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Steps of one size. `rows`: at most this many, and more than half of it; 0: no frame was made,
    only sound. `kind`: `decode`, or `prefill` if a prompt was in the step. `mean_ms` is exact."""

    rows: int
    kind: str
    steps: int
    mean_ms: float


def read_steps(metrics: str) -> Steps:
    """Parse the step times from Prometheus' text format; empty if the server reports none."""
    found: dict[tuple[int, str], list[float]] = {}
    for match in _LINE.finditer(metrics):
        key = int(match["rows"]), match["kind"]
        found.setdefault(key, [0.0, 0.0])[match["what"] == "sum"] = float(match["value"])
    return {key: (count, seconds) for key, (count, seconds) in found.items()}


def between(before: Steps, after: Steps) -> tuple[StepTimes, ...]:
    """Return the steps between two readings, by size."""
    times = []
    for (rows, kind), (count, seconds) in sorted(after.items()):
        earlier_count, earlier_seconds = before.get((rows, kind), (0.0, 0.0))
        steps = count - earlier_count
        if steps > 0:
            mean = (seconds - earlier_seconds) / steps * 1000
            times.append(StepTimes(rows, kind, int(steps), round(mean, 3)))
    return tuple(times)


def mean_ms(
    steps: Iterable[StepTimes], rows: int | None = None, kind: str | None = None
) -> float | None:
    """Return the mean duration in ms of steps that made frames, or of those of one size or kind;
    None if there were none."""
    chosen = [
        step
        for step in steps
        if step.rows and rows in (None, step.rows) and kind in (None, step.kind)
    ]
    total = sum(step.steps for step in chosen)
    if not total:
        return None
    return round(sum(step.mean_ms * step.steps for step in chosen) / total, 3)


DEFINITIONS = {
    "ttfa_raw_ms": "client: first text delta sent to first packet received; has in it the time in "
    "which the first words are still being written, unless texts come whole",
    "ttfa_audible_ms": "client: the same to the first sample above -45 dBFS at the ear",
    "ttfa_server_ms": "server: first text delta received to first packet handed to the socket",
    "viability": "share of packets, after each turn's first, that came before the listener ran out",
    "viable_turns": "share of turns without an underrun",
    "kept_turns": "share of turns without a gap that late text does not explain: the gaps together "
    "are no longer than the server says it waited for text",
    "underruns": "packets that came after the listener ran out of audio, without any buffer",
    "underruns_buffered": "the same for a listener whose player begins 100 ms after the first "
    "packet",
    "worst_gap_ms": "longest silence that late packets put into a turn",
    "held_ms": "server: how long a turn's speech waited for text",
    "rtf": "unpaced pass (whole text, no lead cap, no pauses): seconds from first text to last "
    "packet, per second of audio, of each stream while all sessions run; below 1 is faster than "
    "speech",
    "capacity": "unpaced pass: seconds of audio per second, all sessions together, from when every "
    "session had sound until the last of the turns that count was over; sessions that are done "
    "earlier go on speaking meanwhile",
    "unpaced_failed": "turns that failed in the unpaced pass; its figures leave them out",
    "audio_per_second": "paced pass: seconds of audio per second, all sessions together",
    "start_lag_ms": "open loop and bursts: how late the load generator itself began a turn; where "
    "it is not near 0, the generator and not the server was measured",
    "client_lag_ms": "paced pass: how late timers woke in the load generator's processes; packets "
    "were seen as much too late at most",
    "client_cpu": "paced pass: share of one core of the load generator's busiest process",
    "sustained": "no turn failed and none had an underrun",
    "layouts": "turns by the prompt's layout; full_text starts have the longer prompt",
    "steps": "server, paced pass: engine steps by rows (rounded up to a power of two; 0: sound "
    "only) and kind (prefill: a prompt was in it), with their exact mean",
    "unpaced_steps": "the same of the unpaced pass, where nearly all steps have all sessions' rows",
    "gpu_memory_mib": "memory in use on each GPU of this machine, by everybody, after the level",
    "interrupt_ms": "client: interrupt sent to its answer, after which no byte of the turn follows",
    "last_byte_ms": "client: interrupt sent to the last byte of the turn received, 0 if none came "
    "after it; of the turns that were on the air (`interrupts_on_air` of them)",
    "last_byte_steps": "the same in mean engine steps of the paced pass (`step_ms`)",
}


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of something in milliseconds, or of a plain number, and the largest value."""

    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class LevelResult:
    """The figures of one level; DEFINITIONS says what each means.

    `turns` = `complete` + `interrupted` + `failed`; refusals are among the failed, and `errors`
    counts them by code.
    """

    level: str
    mode: str
    sessions: int
    rate: float
    changes: dict[str, Any]
    """Settings that differed for this level only."""
    sustained: bool
    turns: int
    complete: int
    interrupted: int
    failed: int
    errors: dict[str, int]
    reasons: dict[str, int]
    layouts: dict[str, int]
    ttfa_raw_ms: Spread | None
    ttfa_audible_ms: Spread | None
    ttfa_server_ms: Spread | None
    viability: float
    viable_turns: float
    kept_turns: float
    underruns: int
    underruns_buffered: int
    underruns_server: int
    worst_gap_ms: float
    held_ms: Spread | None
    interrupt_ms: Spread | None
    interrupts_on_air: int
    last_byte_ms: Spread | None
    last_byte_steps: Spread | None
    audio_seconds: float
    seconds: float
    audio_per_second: float
    rtf: Spread | None
    capacity: float | None
    unpaced_failed: int
    client_processes: int
    client_cpu: float
    client_lag_ms: Spread | None
    start_lag_ms: Spread | None
    step_ms: float | None
    steps: tuple[StepTimes, ...]
    unpaced_steps: tuple[StepTimes, ...]
    gpu_memory_mib: tuple[int, ...]


def level_result(
    level: Level,
    paced: Observed,
    unpaced: Observed | None,
    steps: tuple[StepTimes, ...] = (),
    unpaced_steps: tuple[StepTimes, ...] = (),
    gpu_memory_mib: tuple[int, ...] = (),
) -> LevelResult:
    """Summarise what was observed of a level."""
    turns = paced.turns
    heard = [turn for turn in turns if turn.trace.packets]
    summary = summarise(turn.report for turn in heard)
    results = [turn.result for turn in turns if turn.result is not None]
    kept = [turn.report.late_seconds <= turn.report.held_seconds for turn in heard]
    return LevelResult(
        level=level.name,
        mode=level.mode.value,
        sessions=paced.sessions,
        rate=level.rate,
        changes=dict(level.changes),
        sustained=summary.underruns == 0 and len(heard) == len(turns) > 0,
        ttfa_raw_ms=spread([turn.report.ttfa for turn in heard], 1000),
        ttfa_audible_ms=spread([turn.audible_ttfa for turn in heard], 1000),
        ttfa_server_ms=spread([result.ttfa_ms for result in results]),
        viability=summary.viability,
        viable_turns=summary.viable_turns,
        kept_turns=sum(kept) / len(kept) if kept else 1.0,
        underruns=summary.underruns,
        underruns_buffered=sum(_buffered_underruns(turn) for turn in heard),
        underruns_server=sum(result.underruns for result in results),
        worst_gap_ms=round(max((turn.worst_gap for turn in heard), default=0.0) * 1000, 2),
        held_ms=spread([turn.report.held_seconds for turn in heard], 1000),
        audio_seconds=round(summary.audio_seconds, 2),
        seconds=round(paced.seconds, 2),
        audio_per_second=round(summary.audio_seconds / (paced.seconds or inf), 2),
        client_processes=paced.processes,
        client_cpu=round(paced.cpu, 4),
        client_lag_ms=spread(paced.late, 1000),
        start_lag_ms=spread([turn.start_lag for turn in turns], 1000),
        step_ms=mean_ms(steps),
        steps=steps,
        unpaced_steps=unpaced_steps,
        gpu_memory_mib=gpu_memory_mib,
        **_counts(turns),
        **_interrupts(turns, mean_ms(steps)),
        **_speed(unpaced),
    )


def _buffered_underruns(turn: Observation) -> int:
    return measure(replace(turn.trace, client_buffer=CLIENT_BUFFER), SAMPLE_RATE).underruns


def _counts(turns: Sequence[Observation]) -> dict[str, Any]:
    """Return how many turns there were of each kind."""
    results = [turn.result for turn in turns if turn.result is not None]
    failed = [turn for turn in turns if turn.error is not None]
    cut = [turn for turn in turns if turn.error is None and turn.interrupt_seconds is not None]
    return {
        "turns": len(turns),
        "complete": len(turns) - len(cut) - len(failed),
        "interrupted": len(cut),
        "failed": len(failed),
        "errors": dict(Counter(turn.error for turn in failed if turn.error)),
        "reasons": dict(Counter(result.reason for result in results)),
        "layouts": dict(Counter(turn.layout for turn in turns if turn.layout)),
    }


def _interrupts(turns: Sequence[Observation], step_ms: float | None) -> dict[str, Any]:
    """Return how soon interrupted turns were silent, not counting those that ended in an error."""
    cut = [turn for turn in turns if turn.error is None]
    last = [turn.last_byte_seconds for turn in cut if turn.last_byte_seconds is not None]
    steps = [seconds * 1000 / step_ms for seconds in last] if step_ms else []
    return {
        "interrupt_ms": spread([turn.interrupt_seconds for turn in cut], 1000),
        "interrupts_on_air": len(last),
        "last_byte_ms": spread(last, 1000),
        "last_byte_steps": spread(steps),
    }


def _speed(unpaced: Observed | None) -> dict[str, Any]:
    """Return the figures of the unpaced pass, if there was one."""
    fast = [turn for turn in unpaced.turns if turn.complete] if unpaced else []
    rate = unpaced.busy_audio_rate if unpaced else None
    return {
        "rtf": spread([turn.speed for turn in fast], digits=4),
        "capacity": None if rate is None else round(rate, 2),
        "unpaced_failed": sum(turn.error is not None for turn in unpaced.turns) if unpaced else 0,
    }


def spread(values: Sequence[float | None], scale: float = 1.0, digits: int = 2) -> Spread | None:
    """Return the percentiles of the values that are not None, times `scale`; None without any."""
    known = [value * scale for value in values if value is not None]
    found = percentiles(known)
    if found is None:
        return None
    figures = (found.p50, found.p95, found.p99, max(known))
    return Spread(*(round(value, digits) for value in figures))
