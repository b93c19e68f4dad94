"""How many replicas a fleet needs: the autoscaling policy for Ray Serve.

The load of a replica is the share of its capacity that is asked for (`Load.share`), so their sum is
in replicas. Sessions do not pass through Ray, so its own count of requests says nothing here.
(Ray Serve's documentation, "Custom autoscaling policies".)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

LOAD, LOADING_SECONDS = "load", "loading_seconds"
"""The keys under which replicas report their load, and how long they took to be ready."""
_WINDOW_SECONDS = 60.0
_SHORTEST_SECONDS = 5.0
_MOST_GROWTH = 2.0
_SEEN = "seen"


class Context(Protocol):
    """The part of Ray Serve's `AutoscalingContext` that is used."""

    target_num_replicas: int
    capacity_adjusted_min_replicas: int
    capacity_adjusted_max_replicas: int
    policy_state: dict[str, Any]
    current_time: float | None

    @property
    def aggregated_metrics(self) -> Mapping[str, Mapping[Any, float]] | None: ...


class Policy:
    """Adds replicas above a load of `up` on each, removes them below `down`.

    A replica that is asked for now helps once it has loaded. Growth is therefore extrapolated for
    as long as the slowest replica took to load, to twice the load at most; a fall never is. Ray
    Serve waits `upscale_delay_s` and `downscale_delay_s` before it acts.
    """

    def __init__(self, up: float, down: float) -> None:
        self._up, self._down = up, down

    def __call__(self, context: Context) -> tuple[int, dict[str, Any]]:
        """Return the number of replicas wanted, and the last minute's loads for the next call."""
        metrics = context.aggregated_metrics or {}
        load = sum(metrics.get(LOAD, {}).values())
        loading = max(metrics.get(LOADING_SECONDS, {}).values(), default=0.0)
        now = context.current_time or 0.0
        seen = [
            (at, what)
            for at, what in context.policy_state.get(_SEEN, [])
            if now - at <= _WINDOW_SECONDS
        ]
        expected = forecast(load, now, seen, loading)
        wanted = replicas(load, expected, context.target_num_replicas, self._up, self._down)
        least, most = context.capacity_adjusted_min_replicas, context.capacity_adjusted_max_replicas
        return max(least, min(most, wanted)), {_SEEN: [*seen, (now, load)]}


def forecast(load: float, now: float, seen: list[tuple[float, float]], ahead: float) -> float:
    """Return the load in `ahead` seconds, if it grows as it has since the oldest of `seen`."""
    if not seen or now - seen[0][0] < _SHORTEST_SECONDS:
        return load
    at, before = seen[0]
    growth = max(0.0, load - before) / (now - at)
    return min(load + growth * ahead, _MOST_GROWTH * load)


def replicas(load: float, expected: float, current: int, up: float, down: float) -> int:
    """Return the replicas for `expected`, with no more than `up` on each; fewer than now only where
    the load on each of the `current` ones is below `down`."""
    needed = math.ceil(round(expected / up, 6))
    if needed >= current or load < down * current:
        return needed
    return current
