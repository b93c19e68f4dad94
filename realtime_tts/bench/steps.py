"""How long the engine's steps took, by rows: from what a server's `/metrics` counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_LINE = re.compile(
    r'^tts_engine_step_rows_seconds_(?P<what>count|sum)\{kind="(?P<kind>\w+)",rows="(?P<rows>\d+)"\}'
    r" (?P<value>\S+)$",
    re.MULTILINE,
)

Steps = Mapping[tuple[int, str], tuple[float, float]]
"""How many steps there were, and their seconds in all, by (rows, kind)."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Steps of one size. `rows`: at most so many, and more than half of it; 0: no frame was made,
    only sound. `kind`: `decode`, or `prefill` where a prompt was in it. `mean_ms` is exact."""

    rows: int
    kind: str
    steps: int
    mean_ms: float


def read_steps(metrics: str) -> Steps:
    """What a text in Prometheus' format says; empty where the server does not tell."""
    found: dict[tuple[int, str], list[float]] = {}
    for match in _LINE.finditer(metrics):
        key = int(match["rows"]), match["kind"]
        found.setdefault(key, [0.0, 0.0])[match["what"] == "sum"] = float(match["value"])
    return {key: (count, seconds) for key, (count, seconds) in found.items()}


def between(before: Steps, after: Steps) -> tuple[StepTimes, ...]:
    """The steps between two readings, by size."""
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
    """Mean step that made frames, or of those of one size or kind; None without any."""
    chosen = [
        step
        for step in steps
        if step.rows and rows in (None, step.rows) and kind in (None, step.kind)
    ]
    total = sum(step.steps for step in chosen)
    if not total:
        return None
    return round(sum(step.mean_ms * step.steps for step in chosen) / total, 3)
