"""How time to first audio and engine steps grow, of one result or of several side by side.

From the JSON of earlier runs, so that a picture can be drawn without measuring again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realtime_tts.bench.settings import Mode
from realtime_tts.bench.steps import StepTimes, mean_ms
from realtime_tts.errors import ConfigError

_COLORS = ("#1f6f8b", "#e07a5f", "#2a9d8f", "#3d405b", "#b5838d", "#8a7500")
_GRID = "#e3e3e3"


@dataclass(frozen=True, slots=True)
class Growth:
    """How one result's figures grow with the load, in milliseconds.

    `ttfa`: (sessions, p50, p95) of the time to first audio, of turns that begin together or, where
    none do, of the closed loop. `steps`: (rows, mean) of the engine steps without a prompt.
    """

    name: str
    machine: str
    random_weights: bool
    mode: str
    ttfa: tuple[tuple[int, float, float], ...]
    steps: tuple[tuple[int, float], ...]


def read_growth(path: Path) -> Growth:
    """Read a result's JSON file. Raises ConfigError for a file that is none."""
    try:
        return growth(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is not a result of `realtime-tts bench --json`: {error!r}"
        raise ConfigError(message) from error


def growth(result: dict[str, Any]) -> Growth:
    """Take the growth from a result, given as JSON has it."""
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
    """Give one point for each number of sessions; of several such levels the first one counts."""
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
    """Write a PNG (or what the file's suffix says). Needs matplotlib, the extra `plot`."""
    import matplotlib

    matplotlib.use("Agg")  # no window, also where there is a display
    from matplotlib import pyplot

    figure, (first_audio, steps) = pyplot.subplots(
        1, 2, figsize=(10, 4.4), dpi=150, facecolor="white"
    )
    for color, one in zip(_cycle(len(found)), found, strict=True):
        _draw_ttfa(first_audio, one, color)
        _draw_steps(steps, one, color)
    modes = {one.mode for one in found}
    together = "turns that begin together" if modes == {Mode.BURST} else "sessions at once"
    _dress(first_audio, "Time to first audio", together)
    _dress(
        steps, "Mean engine step without a prompt (80 ms is real time)", "rows in the step, at most"
    )
    noise = "random weights: speech is noise; " if any(one.random_weights for one in found) else ""
    places = "; ".join(dict.fromkeys(one.machine for one in found))
    figure.text(0.01, 0.015, noise + places, fontsize=7, color="#666666")
    figure.tight_layout(rect=(0.0, 0.04, 1.0, 1.0))
    figure.savefig(path)
    pyplot.close(figure)


def _draw_ttfa(axes: Any, one: Growth, color: str) -> None:
    sessions = [point[0] for point in one.ttfa]
    low, high = [point[1] for point in one.ttfa], [point[2] for point in one.ttfa]
    axes.fill_between(sessions, low, high, color=color, alpha=0.12, linewidth=0)
    style = {"color": color, "marker": "o", "markersize": 4}
    axes.plot(sessions, low, label=f"{one.name}, p50", **style)
    axes.plot(sessions, high, label=f"{one.name}, p95", linestyle="--", alpha=0.8, **style)


def _draw_steps(axes: Any, one: Growth, color: str) -> None:
    rows, means = [point[0] for point in one.steps], [point[1] for point in one.steps]
    axes.plot(rows, means, color=color, marker="o", markersize=4, label=one.name)


def _dress(axes: Any, title: str, load: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(load)
    axes.set_ylabel("ms")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=0)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if axes.get_lines():
        axes.legend(frameon=False, fontsize=8, loc="upper left")


def _cycle(count: int) -> list[str]:
    return [_COLORS[number % len(_COLORS)] for number in range(count)]
