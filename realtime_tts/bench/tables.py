"""The figures as a table: in the terminal and in Markdown, from the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table

from realtime_tts.bench.result import LevelResult, Spread
from realtime_tts.bench.run import BenchResult
from realtime_tts.bench.settings import Mode
from realtime_tts.client.address import is_loopback

LOAD_NAMES: dict[str, str] = {
    Mode.CLOSED: "sessions",
    Mode.OPEN: "turns per second",
    Mode.AGENTS: "conversations",
}


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cell: Callable[[LevelResult], str]


_COLUMNS = (
    _Column("turns", lambda level: str(level.turns)),
    _Column("TTFA p50 ms", lambda level: _p(level.ttfa_raw_ms, "p50")),
    _Column("TTFA p95 ms", lambda level: _p(level.ttfa_raw_ms, "p95")),
    _Column("TTFA p99 ms", lambda level: _p(level.ttfa_raw_ms, "p99")),
    _Column("audible p50 ms", lambda level: _p(level.ttfa_audible_ms, "p50")),
    _Column("audible p95 ms", lambda level: _p(level.ttfa_audible_ms, "p95")),
    _Column("audible p99 ms", lambda level: _p(level.ttfa_audible_ms, "p99")),
    _Column("turns without a gap", lambda level: f"{level.viable_turns:.1%}"),
    _Column("without a gap of ours", lambda level: f"{level.kept_turns:.1%}"),
    _Column("viability", lambda level: f"{level.viability:.2%}"),
    _Column("underruns", lambda level: str(level.underruns)),
    _Column("worst gap ms", lambda level: f"{level.worst_gap_ms:.0f}"),
    _Column("held p95 ms", lambda level: _p(level.held_ms, "p95")),
    _Column("RTF p50", lambda level: _p(level.rtf, "p50", 2)),
    _Column("RTF p95", lambda level: _p(level.rtf, "p95", 2)),
    _Column("audio s/s", lambda level: _number(level.capacity or level.audio_per_second, 1)),
    _Column("failed", lambda level: _failures(level)),
)
_INTERRUPT = _Column("interrupt p95 ms", lambda level: _p(level.interrupt_ms, "p95", 1))


def terminal_table(result: BenchResult) -> Table:
    """For the console: a column for each level, which fits where a row for each would not."""
    table = Table()
    first, *others = _columns(result)
    table.add_column(first.title)
    for level in result.levels:
        style = "yellow" if level.underruns or level.failed else None
        table.add_column(first.cell(level), justify="right", style=style)
    for column in others:
        table.add_row(column.title, *(column.cell(level) for level in result.levels))
    return table


def markdown_table(result: BenchResult) -> str:
    """For documents; says below on what it was measured."""
    columns = _columns(result)
    lines = [
        "| " + " | ".join(column.title for column in columns) + " |",
        "|" + " ---: |" * len(columns),
    ]
    lines += [
        "| " + " | ".join(column.cell(level) for column in columns) + " |"
        for level in result.levels
    ]
    parts = [*lines, "", headline(result), ""]
    if result.command:
        parts += [f"    {result.command}", ""]
    return "\n".join(parts + _step_lines(result.levels))


def _step_lines(levels: Sequence[LevelResult]) -> list[str]:
    """How long the engine's steps took, where the server tells; how many of them in brackets."""
    buckets = sorted({step.rows for level in levels for step in level.steps})
    if not buckets:
        return []
    titles = " | ".join(f"rows ≤ {rows}" for rows in buckets)
    lines = ["Mean engine step in ms (steps):", "", f"| load | kind | {titles} |"]
    lines.append("| ---: | --- |" + " ---: |" * len(buckets))
    for level in levels:
        for kind in sorted({step.kind for step in level.steps}):
            found = {step.rows: step for step in level.steps if step.kind == kind}
            cells = [
                f"{found[rows].mean_ms:.2f} ({found[rows].steps})" if rows in found else "–"
                for rows in buckets
            ]
            lines.append(f"| {level.level} | {kind} | {' | '.join(cells)} |")
    return [*lines, ""]


def headline(result: BenchResult) -> str:
    """Model, machine and load in one sentence."""
    machine, settings = result.machine, result.settings
    timing = settings["timing"]
    text = "whole texts"
    if timing["kind"] != "whole":
        pace = f"{timing['tokens_per_second']:g}"
        if result.levels[0].mode == Mode.AGENTS:
            pace = f"{settings['agents']['slowest']:g} to {settings['agents']['fastest']:g}"
        text = f"text in {timing['kind']} at {pace} tokens/s"
    versions = f"realtime-tts {machine['realtime_tts']}"
    if machine["commit"]:
        versions += f" ({machine['commit']})"
    noise = "RANDOM WEIGHTS, speech is noise: " if result.server["random_weights"] else ""
    gpu = f", {machine['gpu']}" if machine["gpu"] else ""
    return (
        f"{noise}{result.server['model']}; load generator {_place(result.server['url'])}: "
        f"{machine['cpu']}, {machine['cores']} cores{gpu}; {versions}; {text}; {result.began}"
    )


def _place(url: str) -> str:
    """Where the load generator was, as seen from what it measured."""
    if "://" not in url:
        return "in the engine's own process, without sockets"
    return "with the server" if is_loopback(url) else "on another machine"


def _columns(result: BenchResult) -> tuple[_Column, ...]:
    load = LOAD_NAMES[result.levels[0].mode]
    interrupt = (_INTERRUPT,) if any(level.interrupt_ms for level in result.levels) else ()
    return (_Column(load, lambda level: level.level), *_COLUMNS, *interrupt)


def _p(spread: Spread | None, which: str, digits: int = 0) -> str:
    return _number(None if spread is None else getattr(spread, which), digits)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _failures(level: LevelResult) -> str:
    codes = ", ".join(f"{count} {code}" for code, count in sorted(level.errors.items()))
    unpaced = f"{level.unpaced_failed} unpaced" if level.unpaced_failed else ""
    return ", ".join(part for part in (codes, unpaced) if part) or "0"
