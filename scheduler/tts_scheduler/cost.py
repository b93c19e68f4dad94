"""CostModel: how long a step will take, learned from how long steps took.

    seconds = base + row · decode rows + codec_frame · codec frames
            + (prefill + prefill_row · prefills + prefill_token · prefill tokens, if any prefill)

The two lines are fitted separately, so that what was learned about the rare prefills does not fade
while there are none. Each is a least-squares fit with forgetting, regularised towards a prior of
that shape (at any scale), under the constraint that no coefficient is negative: more load never
costs less.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

from tts_scheduler.plan import StepPlan

_PRIOR_WEIGHT = 1e-4
"""Weight of the prior, in steps: it settles what the data leave open, and no more.

A slope may be a hundred times the prior's, and then a step says 1e-4 as much about it."""
_STALE = 0.01
"""Weight of sizes that have not been seen for long, relative to those seen now.

Where they agree, the old sizes settle what the others leave open. Where they do not, the machine's
speed has changed since: then the fit is right within a tenth for the sizes seen now."""
_MEMORY = 50
"""How many steps of a size it takes to forget."""
_OUTLIER = 4.0
"""A residual of more than this many times the usual one counts as that many times."""
_CAUTION = 2.0
"""Number of usual residuals that `CostModel.caution` adds."""


@dataclass(frozen=True, slots=True)
class Load:
    """The contents of a step: counts of rows, tokens and frames."""

    prefill_rows: int = 0
    prefill_tokens: int = 0
    decode_rows: int = 0
    codec_frames: int = 0

    @classmethod
    def of(cls, plan: StepPlan) -> Load:
        """Return the load of a plan."""
        prefills = plan.prefills
        tokens = sum(p.prompt_tokens + p.text_tokens for p in prefills)
        return cls(len(prefills), tokens, len(plan.decodes), plan.codec_frames)


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Seconds per unit of load.

    The defaults are those of a large GPU: too low a capacity would refuse the first burst for
    nothing, while too high a one is corrected by the first steps, while rows are joining. Only
    several prefills at once are assumed to be expensive until seen, because one such step can cost
    a listener a gap.
    """

    base: float = 0.008
    row: float = 0.00006
    codec_frame: float = 0.00003
    prefill: float = 0.0015
    prefill_row: float = 0.002
    prefill_token: float = 0.00001

    def seconds(self, load: Load) -> float:
        """Return the predicted seconds of a step with this load."""
        steady = self.base + self.row * load.decode_rows + self.codec_frame * load.codec_frames
        if not load.prefill_rows:
            return steady
        rows = self.prefill_row * load.prefill_rows
        return steady + self.prefill + rows + self.prefill_token * load.prefill_tokens


def bucket_of(rows: int, buckets: tuple[int, ...]) -> int:
    """Return the number of rows that a step of `rows` is run with: the next larger of the sorted
    `buckets`, or `rows` itself beyond the last one. 0 stays 0."""
    index = bisect_left(buckets, rows)
    return buckets[index] if rows and index < len(buckets) else rows


class _Fit:
    """Weighted non-negative least squares for three coefficients.

    The fit uses factors relative to the prior: with z = prior · x it fits seconds = factors · z,
    and where the data say nothing the factors stay at one common scale, the machine's speed.
    Observations are kept apart by size (1, 2, 3-4, 5-8, ... rows), and each size forgets only as it
    is seen again: an hour of single rows must not erase what sixty-four rows cost. But a size
    weighs less and less beside those that are seen: sixty-four rows of a slow minute would
    otherwise keep the capacity so low that there are never sixty-four rows again.
    """

    def __init__(self, prior: tuple[float, float, float]) -> None:
        self._prior = prior
        self._keep = 1.0 - 1.0 / _MEMORY
        self._fade = 1.0 - 0.25 / _MEMORY
        """Factor on a size's weight for every observation of another size."""
        self._sizes: dict[int, list[float]] = {}
        """Sums over the observations: z0z0, z0z1, z0z2, z1z1, z1z2, z2z2, z0y, z1y, z2y."""
        self._all, self._recent = [0.0] * 9, [0.0] * 9
        """The sums over all sizes: weighted equally, and by how recently each was seen."""
        self._seen = 0
        self._seen_last: dict[int, int] = {}
        self._observed = self._scaled = 1.0  # one step in which the prior was right
        self.factors = [1.0, 1.0, 1.0]

    def observe(self, x: tuple[float, float, float], seconds: float, weight: float) -> None:
        """Add one observation of x[1] rows. `weight` should fall with the square of the seconds."""
        keep, prior = self._keep, self._prior
        root = weight**0.5
        a, b, c = (root * amount * unit for amount, unit in zip(x, prior, strict=True))
        y = root * seconds
        self._observed = keep * self._observed + y
        self._scaled = keep * self._scaled + a + b + c
        fresh = (a * a, a * b, a * c, b * b, b * c, c * c, a * y, b * y, c * y)
        size = int(x[1] - 1).bit_length() if x[1] else -1
        sums = self._sizes.setdefault(size, [0.0] * 9)
        everything, recent, fade = self._all, self._recent, self._fade
        self._seen += 1
        faded = fade ** (self._seen - self._seen_last.get(size, 0))
        self._seen_last[size] = self._seen
        for i, amount in enumerate(fresh):
            old, new = sums[i], keep * sums[i] + amount
            sums[i] = new
            everything[i] += new - old
            recent[i] = fade * recent[i] - faded * old + new
        self._solve()

    def _solve(self) -> None:
        """Run coordinate descent: set each factor in turn to its best nonnegative value."""
        scale = max(self._observed / self._scaled, 1e-6)
        tie = _PRIOR_WEIGHT / scale**2  # the sums shrink by this much on a slower machine
        pull = tie * scale
        sums = zip(self._all, self._recent, strict=True)
        aa, ab, ac, bb, bc, cc, ay, by, cy = (
            _STALE * old + (1.0 - _STALE) * recent for old, recent in sums
        )
        a, b, c = self.factors
        for _ in range(4):
            a = max(0.0, (ay + pull - ab * b - ac * c) / (aa + tie))
            b = max(0.0, (by + pull - ab * a - bc * c) / (bb + tie))
            c = max(0.0, (cy + pull - ac * a - bc * b) / (cc + tie))
        self.factors = [a, b, c]

    def seconds(self, x: tuple[float, float, float]) -> float:
        """Return the fitted seconds for the amounts `x`."""
        prior, factors = self._prior, self.factors
        return sum(p * f * a for p, f, a in zip(prior, factors, x, strict=True))


class CostModel:
    """Predicts the duration of a step. Feed it with `observe`; it starts from `prior`.

    `row_buckets`: numbers of rows that the engine has captured, if any. A step then costs what the
    next larger one costs, and the lines are fitted over those: 257 rows that run as 384 are no
    outlier, and there is no gain in a capacity that ends between two buckets.

    Observe warm-up steps at a few batch sizes first: without them, a machine's capacity is a guess
    until it has been busy.
    """

    def __init__(self, prior: StepCosts | None = None, row_buckets: tuple[int, ...] = ()) -> None:
        self.row_buckets = tuple(sorted(row_buckets))
        prior = StepCosts() if prior is None else prior
        self._steady = _Fit((prior.base, prior.row, prior.codec_frame))
        self._extra = _Fit((prior.prefill, prior.prefill_row, prior.prefill_token))
        self._prior = prior
        self.spread = 1.0  # until steps were observed, the prior may be far off
        """The usual error of a prediction, as a share of it."""
        self._seen = 0
        self.costs = prior
        """The costs learned so far, in seconds per unit of load."""

    @property
    def caution(self) -> float:
        """A factor (1 to 2) on predictions; most steps take less than the product."""
        return 1.0 + min(1.0, _CAUTION * self.spread)

    def predict(self, load: Load) -> float:
        """Return the expected seconds of a step; they never fall when load is added."""
        return self.costs.seconds(self._padded(load))

    def costs_at(self, rows: int) -> StepCosts:
        """Return costs for steps of about `rows` decodes: exact there, linear around it."""
        padding = bucket_of(rows, self.row_buckets) - rows
        costs = self.costs
        return replace(costs, base=costs.base + padding * costs.row) if padding else costs

    def _padded(self, load: Load) -> Load:
        padded = bucket_of(load.decode_rows, self.row_buckets)
        return load if padded == load.decode_rows else replace(load, decode_rows=padded)

    def observe(self, load: Load, seconds: float) -> None:
        """Learn from one step. A single outlier changes little; a new speed is learned in seconds.
        Raises ValueError for negative `seconds`."""
        if seconds < 0.0:
            raise ValueError(f"a step takes at least 0 seconds, got {seconds}")
        load = self._padded(load)
        expected = max(self.costs.seconds(load), 1e-6)
        # At most what the very first step could add: a larger error is learned over more steps.
        limit = _OUTLIER * min(max(self.spread, 0.02), 1.0) * expected
        error = min(max(seconds - expected, -limit), limit)
        self._seen += 1
        self.spread += max(0.05, 1.0 / (self._seen + 1)) * (abs(error) / expected - self.spread)
        self._learn(load, expected + error, 1.0 / expected**2)

    def _learn(self, load: Load, seconds: float, weight: float) -> None:
        steady = (1.0, load.decode_rows, load.codec_frames)
        if load.prefill_rows:
            extra = (1.0, load.prefill_rows, load.prefill_tokens)
            steady_seconds, extra_seconds = self._steady.seconds(steady), self._extra.seconds(extra)
            self._extra.observe(extra, max(seconds - steady_seconds, 0.0), weight)
            if load.decode_rows:
                # Such a step shows by how much the prediction was wrong, but not in which part.
                share = steady_seconds / max(steady_seconds + extra_seconds, 1e-9)
                self._steady.observe(steady, share * seconds, 0.2 * weight)
        else:
            self._steady.observe(steady, seconds, weight)
        self.costs = self._fitted()

    def _fitted(self) -> StepCosts:
        prior, steady, extra = self._prior, self._steady.factors, self._extra.factors
        return StepCosts(
            prior.base * steady[0],
            prior.row * steady[1],
            prior.codec_frame * steady[2],
            prior.prefill * extra[0],
            prior.prefill_row * extra[1],
            prior.prefill_token * extra[2],
        )

    def capacity(self, seconds: float, at_most: int, rows_per_step: int | None = None) -> int:
        """Return the most rows, 1 to `at_most`, that can each make a frame within `seconds`.

        More rows than `rows_per_step` (None: no limit) take more than one step. The result is never
        0: a machine too slow for one listener should show it by its speech.
        """
        full = at_most if rows_per_step is None else min(rows_per_step, at_most)
        step = self._full_step(full)
        if step > seconds:
            fitting = bisect_right(range(1, full), seconds + 1e-12, key=self._full_step)
            return max(1, fitting)
        return min(at_most, int(full * seconds / step + 1e-9)) if step > 0.0 else at_most

    def _full_step(self, rows: int) -> float:
        """Return the seconds of a step in which each of `rows` makes a frame and decodes it."""
        costs = self.costs
        return costs.base + costs.row * bucket_of(rows, self.row_buckets) + costs.codec_frame * rows
