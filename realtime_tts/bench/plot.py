"""The figures as a picture: time to first audio, whether speech kept up, how much, step times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from realtime_tts.bench.result import LevelResult, Spread
from realtime_tts.bench.run import BenchResult
from realtime_tts.bench.tables import headline, load_name

_RAW, _AUDIBLE, _RTF, _VIABLE = "#1f6f8b", "#e07a5f", "#3d405b", "#2a9d8f"
_GRID = "#e3e3e3"


def save_plot(result: BenchResult, path: Path) -> None:
    """Write a PNG (or what the file's suffix says). Needs matplotlib, the extra `plot`."""
    import matplotlib

    matplotlib.use("Agg")  # no window, also where there is a display
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 2, figsize=(11, 8.4), dpi=150)
    levels = result.levels
    for axes, draw in zip(grid.flat, (_first_audio, _keeping_up, _amount, _steps), strict=True):
        draw(axes, levels)
    for axes in grid.flat[:3]:
        _dress(axes, levels)
    title = "Streaming speech under load"
    if result.server["random_weights"]:
        title += " (random weights: speech is noise)"
    figure.suptitle(title, x=0.06, ha="left", fontsize=13, weight="bold")
    figure.text(0.06, 0.01, headline(result), fontsize=6.5, color="#666666", wrap=True)
    figure.tight_layout(rect=(0.0, 0.03, 1.0, 0.98))
    figure.savefig(path)
    pyplot.close(figure)


def _first_audio(axes: Any, levels: Sequence[LevelResult]) -> None:
    places = range(len(levels))
    for color, name, spreads in (
        (_RAW, "first packet", [level.ttfa_raw_ms for level in levels]),
        (_AUDIBLE, "first audible sample", [level.ttfa_audible_ms for level in levels]),
    ):
        low, high = _values(spreads, "p50"), _values(spreads, "p95")
        axes.fill_between(places, low, high, color=color, alpha=0.12, linewidth=0)
        axes.plot(places, low, color=color, marker="o", markersize=4, label=f"{name}, p50")
        axes.plot(
            places,
            high,
            color=color,
            marker="o",
            markersize=4,
            linestyle="--",
            alpha=0.8,
            label=f"{name}, p95",
        )
    axes.set_title("Time to first audio", loc="left", fontsize=10)
    axes.set_ylabel("ms")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)


def _keeping_up(axes: Any, levels: Sequence[LevelResult]) -> None:
    places = range(len(levels))
    share = [level.viable_turns for level in levels]
    axes.bar(places, share, width=0.5, color=_VIABLE, alpha=0.25, label="turns without a gap")
    axes.axhline(1.0, color="#999999", linewidth=0.8)
    speeds = [level.rtf for level in levels]
    highest = max((speed.p95 for speed in speeds if speed), default=1.0)
    axes.set_ylim(0, 1.3 * max(1.0, highest))  # room for the legend above the bars
    if any(speeds):
        axes.plot(
            places, _values(speeds, "p50"), color=_RTF, marker="o", markersize=4, label="RTF, p50"
        )
        axes.plot(
            places,
            _values(speeds, "p95"),
            color=_RTF,
            marker="o",
            markersize=4,
            linestyle="--",
            alpha=0.8,
            label="RTF, p95",
        )
    axes.set_title("Keeping up: real-time factor below 1, no gaps", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper left", ncol=3)


def _amount(axes: Any, levels: Sequence[LevelResult]) -> None:
    places = range(len(levels))
    axes.bar(
        places,
        [level.audio_per_second for level in levels],
        width=0.5,
        color=_RAW,
        alpha=0.35,
        label="asked for by listeners",
    )
    if any(level.capacity for level in levels):
        most = [float("nan") if level.capacity is None else level.capacity for level in levels]
        axes.plot(places, most, color=_RTF, marker="o", markersize=4, label="as fast as it can")
    axes.set_title("Seconds of speech per second, all together", loc="left", fontsize=10)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)


def _steps(axes: Any, levels: Sequence[LevelResult]) -> None:
    """Draw step times over rows, not over load: every level adds its own points."""
    for color, kind in ((_VIABLE, "decode"), (_AUDIBLE, "prefill")):
        steps = [s for level in levels for s in (*level.steps, *level.unpaced_steps)]
        found = [step for step in steps if step.kind == kind and step.rows]
        axes.scatter(
            [step.rows for step in found],
            [step.mean_ms for step in found],
            color=color,
            s=22,
            alpha=0.7,
            label="with a prompt" if kind == "prefill" else "without",
        )
    axes.set_title("Mean engine step by rows (80 ms is real time)", loc="left", fontsize=10)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("rows, at most")
    axes.set_ylabel("ms")
    axes.set_ylim(bottom=0)
    _frame(axes)
    if any(level.steps for level in levels):
        axes.legend(frameon=False, fontsize=8)
    else:
        axes.text(0.5, 0.5, "the server does not tell", ha="center", transform=axes.transAxes)


def _dress(axes: Any, levels: Sequence[LevelResult]) -> None:
    axes.set_xticks(range(len(levels)), [level.level for level in levels])
    axes.set_xlabel(load_name(levels))
    _frame(axes)


def _frame(axes: Any) -> None:
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _values(spreads: Sequence[Spread | None], which: str) -> list[float]:
    return [float("nan") if spread is None else getattr(spread, which) for spread in spreads]
