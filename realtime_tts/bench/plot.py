"""The figures as a picture: time to first audio, and whether speech kept up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from realtime_tts.bench.result import LevelResult, Spread
from realtime_tts.bench.run import BenchResult
from realtime_tts.bench.tables import headline

_RAW, _AUDIBLE, _RTF, _VIABLE = "#1f6f8b", "#e07a5f", "#3d405b", "#2a9d8f"
_GRID = "#e3e3e3"


def save_plot(result: BenchResult, path: Path) -> None:
    """Write a PNG (or what the file's suffix says). Needs matplotlib, the extra `plot`."""
    import matplotlib

    matplotlib.use("Agg")  # no window, also where there is a display
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.6), dpi=150)
    levels = result.levels
    _first_audio(left, levels)
    _keeping_up(right, levels)
    for axes in (left, right):
        _dress(axes, levels)
    figure.suptitle("Streaming speech under load", x=0.06, ha="left", fontsize=13, weight="bold")
    figure.text(0.06, 0.015, headline(result), fontsize=6.5, color="#666666")
    figure.tight_layout(rect=(0.0, 0.04, 1.0, 0.97))
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


def _dress(axes: Any, levels: Sequence[LevelResult]) -> None:
    axes.set_xticks(range(len(levels)), [level.level for level in levels])
    axes.set_xlabel("sessions" if levels[0].mode == "closed" else "turns per second")
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _values(spreads: Sequence[Spread | None], which: str) -> list[float]:
    return [float("nan") if spread is None else getattr(spread, which) for spread in spreads]
