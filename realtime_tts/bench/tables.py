"""The figures as a table: in the terminal and in Markdown, from the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table

from realtime_tts.bench.machine import hardware
from realtime_tts.bench.result import LevelResult, Spread, mean_ms
from realtime_tts.bench.run import BenchResult
from realtime_tts.bench.settings import Mode
from realtime_tts.bench.suite import figures
from realtime_tts.client.address import is_local

_MIXED = "load"
LOAD_NAMES: dict[str, str] = {
    Mode.CLOSED: "sessions",
    Mode.BURST: "turns at once",
    Mode.OPEN: "turns per second",
    Mode.AGENTS: "conversations",
}


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cell: Callable[[LevelResult], str]
    short: bool = True
    """Whether the table for documents, which has a row for each level, includes it too."""


_COLUMNS = (
    _Column("turns", lambda level: str(level.turns)),
    _Column("layout", lambda level: _layouts(level)),
    _Column("TTFA ms", lambda level: _three(level.ttfa_raw_ms)),
    _Column("TTFA at the server ms", lambda level: _three(level.ttfa_server_ms)),
    _Column("audible ms", lambda level: _three(level.ttfa_audible_ms)),
    _Column("turns without a gap", lambda level: f"{level.viable_turns:.1%}"),
    _Column("without a gap of ours", lambda level: f"{level.kept_turns:.1%}", short=False),
    _Column("viability", lambda level: f"{level.viability:.2%}", short=False),
    _Column("underruns", lambda level: str(level.underruns)),
    _Column("underruns with a buffer of 100 ms", lambda level: str(level.underruns_buffered)),
    _Column("worst gap ms", lambda level: f"{level.worst_gap_ms:.0f}", short=False),
    _Column("held p95 ms", lambda level: _p(level.held_ms, "p95"), short=False),
    _Column("RTF p50", lambda level: _p(level.rtf, "p50", 2), short=False),
    _Column("RTF p95", lambda level: _p(level.rtf, "p95", 2)),
    _Column("audio s/s", lambda level: _number(level.capacity or level.audio_per_second, 1)),
    _Column("step ms", lambda level: _number(level.step_ms, 1)),
    _Column("failed", lambda level: _failures(level)),
    _Column("client lag p99 ms", lambda level: _p(level.client_lag_ms, "p99", 1)),
    _Column("client processes", lambda level: str(level.client_processes), short=False),
    _Column("client CPU", lambda level: f"{level.client_cpu:.0%}", short=False),
)
_CUT = (
    _Column("interrupts", lambda level: str(level.interrupts_on_air)),
    _Column("last byte ms", lambda level: _three(level.last_byte_ms, 1)),
    _Column("last byte max ms", lambda level: _p(level.last_byte_ms, "max", 1)),
    _Column("max in steps", lambda level: _p(level.last_byte_steps, "max", 2)),
    _Column("interrupt answered p95 ms", lambda level: _p(level.interrupt_ms, "p95", 1), False),
)


def terminal_table(result: BenchResult) -> Table:
    """Return the table for the console, a column for each level, since rows would not fit."""
    table = Table()
    first, *others = _columns(result)
    table.add_column(first.title)
    for level in result.levels:
        style = None if level.sustained else "yellow"
        table.add_column(first.cell(level), justify="right", style=style)
    for column in others:
        table.add_row(column.title, *(column.cell(level) for level in result.levels))
    return table


def markdown_table(result: BenchResult) -> str:
    """Return the table for documents, with a sentence below that says on what it was measured."""
    columns = [column for column in _columns(result) if column.short]
    lines = [
        "| " + " | ".join(column.title for column in columns) + " |",
        "|" + " ---: |" * len(columns),
    ]
    lines += [
        "| " + " | ".join(column.cell(level) for column in columns) + " |"
        for level in result.levels
    ]
    lines += ["", "Three numbers in a cell are p50 / p95 / p99.", ""]
    lines += [f"- {note}" for note in result.notes] + ([""] if result.notes else [])
    lines += _figure_lines(result) + [headline(result), ""]
    if result.command:
        lines += [f"    {result.command}", ""]
    return "\n".join(lines + _step_lines(result.levels))


def _figure_lines(result: BenchResult) -> list[str]:
    lines = ["| figure | measured | on |", "| --- | ---: | --- |"]
    lines += [f"| {each.name} | {each.value} | {each.seen} |" for each in figures(result.levels)]
    return [*lines, ""]


def _step_lines(levels: Sequence[LevelResult]) -> list[str]:
    """Return how long the engine's steps took by rows, if the server reports it, and GPU memory."""
    steps = [step for level in levels for step in (*level.steps, *level.unpaced_steps)]
    lines = []
    if buckets := sorted({step.rows for step in steps if step.rows}):
        lines += ["Mean engine step in ms by rows, codec and host included, of all levels:", ""]
        lines += ["| rows ≤ | " + " | ".join(map(str, buckets)) + " |"]
        lines += ["| --- |" + " ---: |" * len(buckets)]
        for kind, name in (("decode", "decode only"), ("prefill", "with starts")):
            means = [_number(mean_ms(steps, rows, kind), 1) for rows in buckets]
            lines.append(f"| {name} | {' | '.join(means)} |")
        lines.append("")
    if used := [max(level.gpu_memory_mib) for level in levels if level.gpu_memory_mib]:
        lines += [f"GPU memory in use: {max(used) / 1024:.1f} GiB at most.", ""]
    return lines


def headline(result: BenchResult) -> str:
    """Return one sentence with model, machine and load."""
    machine, settings = result.machine, result.settings
    versions = f"realtime-tts {machine['realtime_tts']}"
    if machine["commit"]:
        versions += f" ({machine['commit']})"
    versions += f", Python {machine['python']}"
    if machine["torch"]:
        versions += f", torch {machine['torch']}"
    noise = "RANDOM WEIGHTS, speech is noise: " if result.server["random_weights"] else ""
    return (
        f"{noise}{result.server['model']}; load generator {_place(result.server['url'])}: "
        f"{hardware(machine)}; {versions}; "
        f"{_text(result)}; seed {settings['seed']}; {result.began}"
    )


def _text(result: BenchResult) -> str:
    """Return how texts arrived, unless a level differed."""
    timing = result.settings["timing"]
    if timing["kind"] == "whole":
        return "whole texts"
    pace = f"{timing['tokens_per_second']:g}"
    if result.levels[0].mode == Mode.AGENTS:
        agents = result.settings["agents"]
        pace = f"{agents['slowest']:g} to {agents['fastest']:g}"
    other = any("timing" in level.changes for level in result.levels)
    return f"text in {timing['kind']} at {pace} tokens/s" + (", starts whole" if other else "")


def _place(url: str) -> str:
    """Return where the load generator ran, relative to what it measured."""
    if "://" not in url:
        return "in the engine's own process, without sockets"
    return "with the server" if is_local(url) else "on another machine"


def _columns(result: BenchResult) -> tuple[_Column, ...]:
    name = load_name(result.levels)
    mixed = name == _MIXED
    load = _Column(name, lambda level: f"{level.mode} {level.level}" if mixed else level.level)
    cut = _CUT if any(level.last_byte_ms for level in result.levels) else ()
    return (load, *_COLUMNS, *cut)


def load_name(levels: Sequence[LevelResult]) -> str:
    """Return what the levels count: sessions, conversations, or turns a second."""
    modes = {level.mode for level in levels}
    return LOAD_NAMES[modes.pop()] if len(modes) == 1 else _MIXED


def _layouts(level: LevelResult) -> str:
    """Return the layout of all turns, or how many had each."""
    if len(level.layouts) == 1:
        return next(iter(level.layouts))
    return ", ".join(f"{count} {name}" for name, count in sorted(level.layouts.items())) or "–"


def _three(spread: Spread | None, digits: int = 0) -> str:
    """Return the three percentiles as text: p50 / p95 / p99."""
    return " / ".join(_p(spread, which, digits) for which in ("p50", "p95", "p99"))


def _p(spread: Spread | None, which: str, digits: int = 0) -> str:
    return _number(None if spread is None else getattr(spread, which), digits)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _failures(level: LevelResult) -> str:
    codes = ", ".join(f"{count} {code}" for code, count in sorted(level.errors.items()))
    unpaced = f"{level.unpaced_failed} unpaced" if level.unpaced_failed else ""
    return ", ".join(part for part in (codes, unpaced) if part) or "0"
