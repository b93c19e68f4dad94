"""The figures as pictures: one result's by load, or how those of several results grow with it.

Growth is read from the JSON of earlier runs, so that nothing has to be measured again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import nan
from pathlib import Path
from typing import Any

from realtime_tts.bench.result import LevelResult, Spread, StepTimes, mean_ms
from realtime_tts.bench.run import BenchResult
from realtime_tts.bench.settings import Mode
from realtime_tts.bench.tables import headline, load_name
from realtime_tts.errors import ConfigError

_RAW, _AUDIBLE, _RTF, _VIABLE = "#1f6f8b", "#e07a5f", "#3d405b", "#2a9d8f"
_COLORS = (_RAW, _AUDIBLE, _VIABLE, _RTF, "#b5838d", "#8a7500")
_GRID, _SMALL = "#e3e3e3", "#666666"


def save_plot(result: BenchResult, path: Path) -> None:
    """Write a PNG. Needs matplotlib, the extra `plot`."""
    levels = result.levels
    title = "Streaming speech under load"
    if result.server["random_weights"]:
        title += " (random weights: speech is noise)"
    with _figure(path, 2, (11, 8.4), 0.03, 0.98) as (figure, grid):
        for axes, draw in zip(grid.flat, (_first_audio, _keeping_up, _amount, _steps), strict=True):
            draw(axes, levels)
        for axes in grid.flat[:3]:
            axes.set_xticks(range(len(levels)), [level.level for level in levels])
            axes.set_xlabel(load_name(levels))
        figure.suptitle(title, x=0.06, ha="left", fontsize=13, weight="bold")
        figure.text(0.06, 0.01, headline(result), fontsize=6.5, color=_SMALL, wrap=True)


@contextlib.contextmanager
def _figure(
    path: Path, rows: int, size: tuple[float, float], bottom: float, top: float
) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes, two in a row, and write it to `path` at the end; the axes are
    between `bottom` and `top`, which go from 0 to 1."""
    import matplotlib

    matplotlib.use("Agg")  # no window, also where there is a display
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(rows, 2, figsize=size, dpi=150, facecolor="white")
    yield figure, grid
    for axes in grid.flat:
        axes.grid(axis="y", color=_GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=8)
    figure.tight_layout(rect=(0.0, bottom, 1.0, top))
    figure.savefig(path, format="png")  # whatever its name ends with
    pyplot.close(figure)


def _title(axes: Any, title: str, unit: str = "") -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)


def _by_rows(axes: Any, label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(label)


def _percentiles(
    axes: Any, at: Sequence[int], low: Sequence[float], high: Sequence[float], color: str, name: str
) -> None:
    """Draw p50 and p95 as two lines, with the space between them shaded."""
    style = {"color": color, "marker": "o", "markersize": 4}
    axes.fill_between(at, low, high, color=color, alpha=0.12, linewidth=0)
    axes.plot(at, low, label=f"{name}, p50", **style)
    axes.plot(at, high, label=f"{name}, p95", linestyle="--", alpha=0.8, **style)


def _of_levels(axes: Any, spreads: Sequence[Spread | None], color: str, name: str) -> None:
    values = [(nan, nan) if spread is None else (spread.p50, spread.p95) for spread in spreads]
    low, high = zip(*values, strict=True)
    _percentiles(axes, range(len(spreads)), low, high, color, name)


def _first_audio(axes: Any, levels: Sequence[LevelResult]) -> None:
    _of_levels(axes, [level.ttfa_raw_ms for level in levels], _RAW, "first packet")
    _of_levels(axes, [level.ttfa_audible_ms for level in levels], _AUDIBLE, "first audible sample")
    _title(axes, "Time to first audio", "ms")


def _keeping_up(axes: Any, levels: Sequence[LevelResult]) -> None:
    share = [level.viable_turns for level in levels]
    axes.bar(range(len(levels)), share, 0.5, color=_VIABLE, alpha=0.25, label="turns without a gap")
    axes.axhline(1.0, color="#999999", linewidth=0.8)
    speeds = [level.rtf for level in levels]
    if any(speeds):
        _of_levels(axes, speeds, _RTF, "RTF")
    _title(axes, "Keeping up: real-time factor below 1, no gaps")
    highest = max((speed.p95 for speed in speeds if speed), default=1.0)
    axes.set_ylim(0, 1.3 * max(1.0, highest))  # room for the legend above the bars


def _amount(axes: Any, levels: Sequence[LevelResult]) -> None:
    places, asked = range(len(levels)), [level.audio_per_second for level in levels]
    axes.bar(places, asked, 0.5, color=_RAW, alpha=0.35, label="asked for by listeners")
    if any(level.capacity for level in levels):
        most = [nan if level.capacity is None else level.capacity for level in levels]
        axes.plot(places, most, color=_RTF, marker="o", markersize=4, label="as fast as it can")
    _title(axes, "Seconds of speech per second, all together")


def _steps(axes: Any, levels: Sequence[LevelResult]) -> None:
    """Draw step times over rows, not over load: every level adds its own points."""
    steps = [s for level in levels for s in (*level.steps, *level.unpaced_steps) if s.rows]
    kinds = ((_VIABLE, "decode", "without"), (_AUDIBLE, "prefill", "with a prompt"))
    for color, kind, name in kinds if steps else ():
        found = [step for step in steps if step.kind == kind]
        rows, means = [step.rows for step in found], [step.mean_ms for step in found]
        axes.scatter(rows, means, s=22, color=color, alpha=0.7, label=name)
    _by_rows(axes, "rows, at most")
    _title(axes, "Mean engine step by rows (80 ms is real time)", "ms")
    if not steps:
        axes.text(0.5, 0.5, "the server does not tell", ha="center", transform=axes.transAxes)


@dataclass(frozen=True, slots=True)
class Growth:
    """How one result's figures grow with the load, in milliseconds.

    `ttfa`: (sessions, p50, p95) of the time to first audio, of turns that begin together, or
    without any, of the closed loop. `steps`: (rows, mean) of the engine steps without a prompt.
    """

    name: str
    machine: str
    random_weights: bool
    mode: str
    ttfa: tuple[tuple[int, float, float], ...]
    steps: tuple[tuple[int, float], ...]


def read_growth(path: Path) -> Growth:
    """Read a result's JSON file. Raises ConfigError for a file that is not a result."""
    try:
        return growth(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is not a result of `realtime-tts bench --json`: {error!r}"
        raise ConfigError(message) from error


def growth(result: dict[str, Any]) -> Growth:
    """Return the growth of a result, given as its JSON."""
    levels, machine, server = result["levels"], result["machine"], result["server"]
    bursts = {level["sessions"] for level in levels if level["mode"] == Mode.BURST}
    mode = Mode.BURST if len(bursts) > 1 else Mode.CLOSED
    steps = [
        StepTimes(**step) for level in levels for step in (*level["steps"], *level["unpaced_steps"])
    ]
    return Growth(
        name=f"{server['model']}",
        machine=f"{machine['gpu'] or machine['cpu']}, {machine['commit'] or 'no commit'}",
        random_weights=bool(server["random_weights"]),
        mode=mode.value,
        ttfa=tuple(_ttfa(level for level in levels if level["mode"] == mode)),
        steps=tuple(_means(steps)),
    )


def _ttfa(levels: Iterable[dict[str, Any]]) -> list[tuple[int, float, float]]:
    """Return one point for each number of sessions, from the first level that has it."""
    points: dict[int, tuple[int, float, float]] = {}
    for level in levels:
        if (spread := level["ttfa_raw_ms"]) is not None:
            sessions = level["sessions"]
            points.setdefault(sessions, (sessions, spread["p50"], spread["p95"]))
    return [points[sessions] for sessions in sorted(points)]


def _means(steps: Sequence[StepTimes]) -> list[tuple[int, float]]:
    sizes = sorted({step.rows for step in steps if step.rows})
    means = [(rows, mean_ms(steps, rows, "decode")) for rows in sizes]
    return [(rows, mean) for rows, mean in means if mean is not None]


def save_growth(found: Sequence[Growth], path: Path) -> None:
    """Write a PNG. Needs matplotlib, the extra `plot`."""
    together = all(one.mode == Mode.BURST for one in found)
    noise = "random weights: speech is noise; " if any(one.random_weights for one in found) else ""
    places = "; ".join(dict.fromkeys(one.machine for one in found))
    with _figure(path, 1, (10, 4.4), 0.04, 1.0) as (figure, (first_audio, steps)):
        for color, one in zip(cycle(_COLORS), found, strict=False):
            sessions, low, high = zip(*one.ttfa, strict=True) if one.ttfa else ((), (), ())
            _percentiles(first_audio, sessions, low, high, color, one.name)
            rows, means = zip(*one.steps, strict=True) if one.steps else ((), ())
            steps.plot(rows, means, color=color, marker="o", markersize=4, label=one.name)
        _by_rows(first_audio, "turns that begin together" if together else "sessions at once")
        _title(first_audio, "Time to first audio", "ms")
        _by_rows(steps, "rows in the step, at most")
        _title(steps, "Mean engine step without a prompt (80 ms is real time)", "ms")
        figure.text(0.01, 0.015, noise + places, fontsize=7, color=_SMALL)
