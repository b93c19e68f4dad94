"""The run behind the table in docs/performance.md: every figure of it, from one command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from realtime_tts.bench.deltas import DeltaKind, DeltaTiming
from realtime_tts.bench.result import LevelResult, Spread, mean_ms
from realtime_tts.bench.settings import AgentSettings, BenchSettings, Level, Mode

STARTS = (8, 32, 64)
"""Numbers of turns that begin together."""
CROWD = 256
"""A number of turns that begin together and are heard to their end."""
CONVERSATIONS = 64

_WHOLE = DeltaTiming(DeltaKind.WHOLE)
_SOON = {"interrupts": 1.0, "warm_up": 2, "pause": 0.05, "rtf_turns": 0, "timing": _WHOLE}
"""Settings to measure a start at its first packet: the listener interrupts soon after it."""


def suite_levels(
    settings: BenchSettings, sessions: Sequence[int], rates: Sequence[float]
) -> list[Level]:
    """Return the levels of the suite. `sessions`: the ramp of live streams; `rates`: of the open
    loop.

    Starts speak whole texts, so that their time includes no writing. Streams and conversations
    speak text deltas as the settings say.
    """
    alone = _SOON | {"turns": 80, "cut_between": (0.05, 0.25)}
    streaming = {"options": {**settings.options, "layout": "streaming"}}
    together = _SOON | {"turns": 15, "cut_between": (0.1, 0.5)}
    live = {"seconds": 15.0, "warm_up": 0, "spread": 5.0}
    talk = AgentSettings(think_seconds=0.5, interrupts=0.5)
    return [
        Level(Mode.BURST, 1, changes=alone),
        Level(Mode.BURST, 1, changes=alone | streaming),
        *(Level(Mode.BURST, number, changes=together) for number in STARTS),
        Level(Mode.BURST, STARTS[-1], changes=together | streaming),
        Level(Mode.BURST, CROWD, changes={"turns": 2, "rtf_turns": 0, "timing": _WHOLE}),
        *(
            Level(Mode.OPEN, rate=rate, changes={"seconds": 20.0, "timing": _WHOLE})
            for rate in rates
        ),
        Level(
            Mode.AGENTS, CONVERSATIONS, changes={"seconds": 20.0, "rtf_turns": 0, "agents": talk}
        ),
        Level(Mode.CLOSED, 1, changes={"turns": 1, "warm_up": 0}),
        *(Level(Mode.CLOSED, number, changes=live, climbs=True) for number in sessions),
    ]


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table. `value`: text with its unit; `seen`: what it was measured on."""

    name: str
    value: str
    seen: str


def figures(levels: Sequence[LevelResult]) -> list[Figure]:
    """Return the rows of the table that these levels have figures for.

    It reads any levels, not only the suite's.
    """
    makers = {Mode.BURST.value: _burst, Mode.OPEN.value: _open}
    found = [figure for each in levels for figure in makers.get(each.mode, _interrupts)(each)]
    found += _of_rates([level for level in levels if level.mode == Mode.OPEN])
    return found + _of_ramp([level for level in levels if level.mode == Mode.CLOSED])


def _burst(level: LevelResult) -> list[Figure]:
    name = f"TTFA p50 / p95 / p99, {level.sessions} simultaneous starts"
    if level.sessions == 1:
        name = "TTFA p50 / p95 / p99, one session"
    seen = _starts(level)
    if not level.interrupted:
        seen += f"; {_lost(level)}"
    return [Figure(name, _ttfa(level), seen), *_interrupts(level)]


def _open(level: LevelResult) -> list[Figure]:
    name = f"TTFA p50 / p95 / p99, {level.rate:g} turns a second"
    return [Figure(name, _ttfa(level), f"{_starts(level)}; {_lost(level)}")]


def _of_rates(levels: Sequence[LevelResult]) -> list[Figure]:
    """Return the highest sustained rate of the open loop, if several were tried."""
    if len(levels) < 2:
        return []
    tried = ", ".join(f"{level.rate:g}: {_kept(level)}" for level in levels)
    kept = max((level.rate for level in levels if level.sustained), default=None)
    value = "none" if kept is None else f"{kept:g}"
    return [Figure("turns a second without an underrun", value, tried)]


def _interrupts(level: LevelResult) -> list[Figure]:
    last, steps = level.last_byte_ms, level.last_byte_steps
    if last is None:
        return []
    value = f"{last.p50:.1f} / {last.p95:.1f} / {last.p99:.1f}, max {last.max:.1f} ms"
    if steps is not None:
        value += f" (p95 {steps.p95:.2f}, max {steps.max:.2f} steps of {level.step_ms:.1f} ms)"
    name = f"interrupt to last byte, p50 / p95 / p99, {level.mode} {level.level}"
    return [Figure(name, value, f"{level.interrupts_on_air} interrupts")]


def _of_ramp(levels: Sequence[LevelResult]) -> list[Figure]:
    """Return streams, throughput and steps, for levels that count sessions."""
    found = []
    kept = [level for level in levels if level.sustained]
    if kept:
        most = max(kept, key=lambda level: level.sessions)
        tried = ", ".join(f"{each.sessions}: {_kept(each)}" for each in levels)
        found.append(Figure("live streams without an underrun", str(most.sessions), tried))
    if buffered := [each for each in levels if not (each.underruns_buffered or each.failed)]:
        most = max(buffered, key=lambda level: level.sessions)
        name = "… for listeners with a buffer of 100 ms"
        found.append(Figure(name, str(most.sessions), f"{most.turns} turns"))
    fast = [level for level in levels if level.capacity is not None]
    if fast:
        most = max(fast, key=lambda level: level.capacity or 0.0)
        each_rate = ", ".join(f"{level.sessions}: {level.capacity:.1f}" for level in fast)
        found.append(Figure("audio seconds per second", f"{most.capacity:.1f}", each_rate))
    for level in levels:
        step = mean_ms(level.unpaced_steps, _bucket(level.sessions), "decode")
        if step is not None:
            name = f"step, rows ≤ {_bucket(level.sessions)}, codec and host included"
            found.append(Figure(name, f"{step:.2f} ms", f"unpaced, sessions: {level.sessions}"))
    return found


def _bucket(rows: int) -> int:
    return 1 << (rows - 1).bit_length()


def _kept(level: LevelResult) -> str:
    return "none" if level.sustained else f"{_lost(level)} of {level.turns} turns"


def _lost(level: LevelResult) -> str:
    late = f"{level.underruns} underruns"
    if level.underruns:
        late += f" ({level.underruns_buffered} with a buffer of 100 ms)"
    return f"{late}, {level.failed} failed"


def _starts(level: LevelResult) -> str:
    layouts = ", ".join(f"{count} {layout}" for layout, count in sorted(level.layouts.items()))
    return f"{layouts} starts"


def _ttfa(level: LevelResult) -> str:
    return f"{_ms(level.ttfa_raw_ms)}; audible {_ms(level.ttfa_audible_ms)}"


def _ms(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    return f"{spread.p50:.1f} / {spread.p95:.1f} / {spread.p99:.1f} ms"
