"""Settings of the scheduler, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """Frozen settings; every duration is in seconds. Raises ValueError for values that cannot work.

    Machine
        `slots`: utterances the engine has room for. `max_rows`: rows decoded per step (None: all
        slots). `max_prefills`: prefills per step (None: as many as `start_seconds` allows).
    Policy
        `lead_cap`: a listener with this much unplayed audio needs no more for now.
        `reserve`: a row with less lead than this is pressing. `yield_lead`: a row with more than
        this stays out of steps that a turn without sound waits for. `min_start_tokens`,
        `max_start_wait`: text to wait for before the first frame, and for how long.
        `start_seconds`: the longest predicted step with more than one prefill.
        `delivery_seconds`: how much longer than the first one a packet may take to its listener;
        no start, and no early first packet, uses this up.
        `codec_chunks`: frames per codec run, first run first; the last value repeats.
    Admission
        `utilisation`: share of a frame's duration that a full step may take before turns have to
        wait; above 1, turns are admitted although not all can be spoken in real time.
        `kv_utilisation`: share of the engine's memory for keys and values that turns of the usual
        length may take together, at the moment when they need most. `max_queue`: turns that may
        wait for capacity (None: an eighth of the slots, at least four).
        `queue_timeout`: how long one may wait.
    """

    slots: int = 16
    max_rows: int | None = None
    max_prefills: int | None = None
    lead_cap: float = 3.0
    reserve: float = 0.3
    yield_lead: float = 2.0
    min_start_tokens: int = 2
    max_start_wait: float = 0.15
    start_seconds: float = 0.05
    delivery_seconds: float = 0.005
    codec_chunks: tuple[int, ...] = (1, 1, 2, 4)
    utilisation: float = 0.8
    kv_utilisation: float = 0.9
    max_queue: int | None = None
    queue_timeout: float = 2.0

    def __post_init__(self) -> None:
        for name in ("slots", "min_start_tokens"):
            _require(getattr(self, name) >= 1, f"{name} must be at least 1", getattr(self, name))
        for name in ("max_rows", "max_prefills"):
            rows = getattr(self, name)
            _require(rows is None or rows >= 1, f"{name} must be None or at least 1", rows)
        queue = self.max_queue
        _require(queue is None or queue >= 0, "max_queue must be None or at least 0", queue)
        times = ("reserve", "yield_lead", "max_start_wait", "start_seconds", "delivery_seconds")
        for name in (*times, "queue_timeout"):
            seconds = getattr(self, name)
            _require(0 <= seconds < inf, f"{name} must be finite and not negative", seconds)
        _require(
            self.reserve <= self.lead_cap < inf,
            f"lead_cap must be finite and at least reserve {self.reserve}",
            self.lead_cap,
        )
        for name in ("utilisation", "kv_utilisation"):
            share = getattr(self, name)
            _require(0 < share < inf, f"{name} must be finite and positive", share)
        schedule = self.codec_chunks
        _require(
            len(schedule) > 0 and min(schedule) >= 1 and list(schedule) == sorted(schedule),
            "codec_chunks must be frame counts of at least 1 that never shrink",
            schedule,
        )

    @property
    def rows_per_step(self) -> int:
        """The most rows that are decoded in one step."""
        return self.slots if self.max_rows is None else min(self.max_rows, self.slots)

    @property
    def queue_length(self) -> int:
        """The most turns that may wait for capacity."""
        return max(4, self.slots // 8) if self.max_queue is None else self.max_queue

    def lead_cap_of(self, asked: float | None) -> float:
        """Return the lead cap of a turn that asked for `asked` seconds (None: default)."""
        return max(self.reserve, self.lead_cap if asked is None else asked)


def _require(holds: bool, expected: str, got: object) -> None:
    if not holds:
        raise ValueError(f"scheduler config: {expected}, got {got!r}")
