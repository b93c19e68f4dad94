"""A machine of captured steps: with it the figures of scheduler/README.md were simulated."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from tts_scheduler import CostModel, Load, StepPlan
from tts_scheduler.cost import bucket_of
from tts_scheduler.machine import Machine

ROW_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


@dataclass(frozen=True, slots=True)
class GraphMachine(Machine):
    """A machine whose steps are captured for some numbers of rows; a step takes the next larger.

    `frame_ms` is (rows, milliseconds) of talker and code predictor together, `codec_ms` (rows ·
    frames, milliseconds) of one codec call: rows with equally many frames share one, and every
    other length is another call. Between two points both are straight lines. Prefills run in
    batches of eight, `prefill_ms` each. `host_ms` and `host_row_ms` come on top of every step.
    The rest is as in `Machine`, whose `costs` are not used.

    The defaults were measured on one H200 with captured pieces of the 1.7B model and random
    weights, all rows at 512 positions; 1,024 rows of codec are twice 512, eight prefills have 64
    positions each. The host's share is ours on one core of a shared AMD EPYC (see "Cost" there).
    """

    row_buckets: tuple[int, ...] = ROW_BUCKETS
    frame_ms: tuple[tuple[int, float], ...] = (
        (1, 5.6),
        (8, 5.78),
        (32, 6.05),
        (64, 7.52),
        (128, 8.72),
        (256, 11.3),
        (512, 18.9),
        (1024, 33.9),
    )
    codec_ms: tuple[tuple[int, float], ...] = (
        (1, 1.31),
        (8, 1.58),
        (32, 2.26),
        (64, 3.06),
        (128, 4.62),
        (256, 7.82),
        (512, 14.2),
        (1024, 25.9),
        (2048, 51.3),
        (8192, 205.0),
    )
    prefill_ms: float = 3.28
    host_ms: float = 0.3
    host_row_ms: float = 0.006
    jitter: float = 0.03

    def step_ms(self, prefills: int, decodes: int, codec: Counter[int]) -> float:
        """Milliseconds of a step; `codec` counts rows by the length of their codec run."""
        rows = prefills + decodes
        total = self.host_ms + self.host_row_ms * rows
        if rows:
            total += _between(self.frame_ms, bucket_of(rows, self.row_buckets))
        total += self.prefill_ms * -(-prefills // 8)
        for frames, count in codec.items():
            total += _between(self.codec_ms, frames * bucket_of(count, self.row_buckets))
        return total

    def planned_seconds(self, plan: StepPlan) -> float:
        codec = Counter(run.frames for run in plan.codec)
        return self.step_ms(len(plan.prefills), len(plan.decodes), codec) / 1e3

    def lesson(self) -> CostModel:
        """A cost model that knows the buckets and has seen a few warm-up steps of each."""
        cost = CostModel(row_buckets=self.row_buckets)
        for _ in range(3):
            for rows in self.row_buckets:
                for prefills, frames in ((0, 0), (0, 1), (min(8, rows), 1)):
                    load = Load(prefills, 64 * prefills, rows, rows * frames)
                    codec = Counter({frames: rows} if frames else {})
                    cost.observe(load, self.step_ms(prefills, rows, codec) / 1e3)
        return cost


def _between(points: tuple[tuple[int, float], ...], at: int) -> float:
    """The value at `at` on the straight lines through `points`; constant beyond their ends."""
    place = bisect_left(points, (at, 0.0))
    if place == 0 or place == len(points):
        return points[min(place, len(points) - 1)][1]
    (left, low), (right, high) = points[place - 1], points[place]
    return low + (high - low) * (at - left) / (right - left)
