import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.graph_machine import GraphMachine
from tts_scheduler import CostModel, Load, StepCosts

CPU = StepCosts(0.012, 0.006, 0.002, 0.02, 0.02, 0.0002)
GPU = StepCosts(0.0067, 0.00004, 0.00003, 0.0018, 0.0001, 0.000004)
MIDDLE = StepCosts(0.012, 0.00015, 0.0001, 0.004, 0.0005, 0.00001)

loads = st.builds(
    Load,
    prefill_rows=st.integers(0, 8),
    prefill_tokens=st.integers(0, 500),
    decode_rows=st.integers(0, 128),
    codec_frames=st.integers(0, 512),
)


def lesson(
    cost: CostModel, truth: StepCosts, rows: list[int], noise: float = 0.05, seed: int = 5
) -> CostModel:
    """Steps as a busy machine takes them: prefills in a fifth of them, codec runs of four."""
    rng = random.Random(seed)
    for number in rows:
        prefills = rng.randint(1, 3) if rng.random() < 0.2 else 0
        frames = sum(rng.choice((0, 0, 0, 4)) for _ in range(number))
        load = Load(prefills, 60 * prefills, number, frames)
        cost.observe(load, truth.seconds(load) * rng.uniform(1.0 - noise, 1.0 + noise))
    return cost


@pytest.mark.parametrize(
    ("truth", "most"), [(CPU, 6), (GPU, 128), (MIDDLE, 128)], ids=["cpu", "gpu", "middle"]
)
def test_it_learns_a_machine_from_its_steps(truth: StepCosts, most: int) -> None:
    rng = random.Random(1)
    cost = lesson(CostModel(), truth, [rng.randint(1, most) for _ in range(600)])
    for rows in (1, most // 2, most):
        steady = Load(0, 0, rows, rows)
        assert cost.predict(steady) == pytest.approx(truth.seconds(steady), rel=0.08)
        starting = Load(2, 120, rows, rows)
        assert cost.predict(starting) == pytest.approx(truth.seconds(starting), rel=0.15)


@given(st.lists(st.tuples(loads, st.floats(0.0, 2.0)), max_size=40), loads, loads)
def test_more_load_never_costs_less_whatever_was_seen(
    seen: list[tuple[Load, float]], some: Load, more: Load
) -> None:
    cost = CostModel()
    for load, seconds in seen:
        cost.observe(load, seconds)
    both = Load(
        some.prefill_rows + more.prefill_rows,
        some.prefill_tokens + more.prefill_tokens,
        some.decode_rows + more.decode_rows,
        some.codec_frames + more.codec_frames,
    )
    assert 0.0 <= cost.predict(some) <= cost.predict(both)
    assert 1.0 <= cost.caution <= 2.0


@given(st.lists(st.tuples(loads, st.floats(0.0, 2.0)), max_size=40), st.integers(1, 64))
def test_capacity_is_the_largest_number_of_rows_that_fits(
    seen: list[tuple[Load, float]], at_most: int
) -> None:
    cost = CostModel()
    for load, seconds in seen:
        cost.observe(load, seconds)
    capacity = cost.capacity(0.056, at_most)
    assert 1 <= capacity <= at_most
    if capacity > 1:
        assert cost.predict(Load(0, 0, capacity, capacity)) <= 0.056 + 1e-9
    if capacity < at_most:
        assert cost.predict(Load(0, 0, capacity + 1, capacity + 1)) > 0.056 - 1e-9


def warm_up(cost: CostModel, truth: StepCosts) -> CostModel:
    """The steps of an engine's warm-up: first the prefills, then decodes with runs of 1, 2, 4."""
    rng = random.Random(3)
    for rows in (1, 2, 4, 8):
        decodes = [Load(0, 0, rows, rows * frames) for frames in (1, 0, 2, 0, 0, 0, 4)]
        for load in [Load(rows, 11 * rows, 0, 0), *decodes]:
            cost.observe(load, truth.seconds(load) * rng.uniform(0.95, 1.05))
    return cost


@pytest.mark.parametrize(
    "truth",
    [CPU, GPU, MIDDLE, StepCosts(0.002, 0, 0, 0, 0, 0), StepCosts(0.001, 1e-5, 1e-5, 5e-4, 1e-5)],
    ids=["cpu", "gpu", "middle", "flat", "small"],
)
def test_a_warm_up_teaches_any_machine(truth: StepCosts) -> None:
    cost = warm_up(CostModel(), truth)
    for load in (Load(0, 0, 1, 1), Load(0, 0, 8, 8), Load(0, 0, 32, 32), Load(1, 60, 8, 8)):
        assert cost.predict(load) == pytest.approx(truth.seconds(load), rel=0.15)


@pytest.mark.parametrize("stall", [0.1, 0.3, 1.0])
def test_a_stall_in_the_first_step_costs_no_capacity(stall: float) -> None:
    cost = CostModel()
    for rows in range(8):
        load = Load(1, 60, rows, rows)
        cost.observe(load, GPU.seconds(load) + (0.0 if rows else stall))
        assert cost.capacity(0.056, 128) >= 100


def test_rows_beyond_one_step_take_turns() -> None:
    cost = CostModel(StepCosts(0.010, 0.001, 0.0, 0.0, 0.0, 0.0))
    # 10 rows take 20 ms, so 56 ms hold 2.8 such steps
    assert cost.capacity(0.056, at_most=100, rows_per_step=10) == 28
    assert cost.capacity(0.056, at_most=20, rows_per_step=10) == 20
    assert cost.capacity(0.015, at_most=100, rows_per_step=10) == 5


def test_a_machine_too_slow_for_one_still_takes_one() -> None:
    cost = CostModel(StepCosts(base=0.5))
    assert cost.capacity(0.056, 8) == 1


def test_capacity_falls_while_the_first_rows_join_a_slow_machine() -> None:
    cost = lesson(CostModel(), CPU, [1] * 20 + [2] * 20 + [3] * 20)
    assert 4 <= cost.capacity(0.056, 64) <= 6


def test_an_hour_of_single_rows_does_not_wear_away_what_many_rows_cost() -> None:
    cost = lesson(CostModel(), MIDDLE, [1, 8, 64, 128] * 50)
    before = cost.capacity(0.056, 1000)
    lesson(cost, MIDDLE, [1] * 5000)
    assert cost.capacity(0.056, 1000) == pytest.approx(before, rel=0.05)


def test_a_quiet_time_does_not_wear_away_what_a_prefill_costs() -> None:
    cost = CostModel()
    for _ in range(50):
        cost.observe(Load(1, 60, 4, 4), CPU.seconds(Load(1, 60, 4, 4)))
        cost.observe(Load(0, 0, 4, 4), CPU.seconds(Load(0, 0, 4, 4)))
    for _ in range(5000):
        cost.observe(Load(0, 0, 4, 4), CPU.seconds(Load(0, 0, 4, 4)))
    expected = CPU.seconds(Load(1, 60, 4, 4))
    assert cost.predict(Load(1, 60, 4, 4)) == pytest.approx(expected, rel=0.05)


def test_a_lone_outlier_changes_little() -> None:
    cost = lesson(CostModel(), MIDDLE, [16] * 300)
    before = cost.predict(Load(0, 0, 16, 16))
    cost.observe(Load(0, 0, 16, 16), 5.0)  # a garbage collection, a swapped page, a debugger
    assert cost.predict(Load(0, 0, 16, 16)) == pytest.approx(before, rel=0.05)


def test_a_machine_that_slows_down_is_learned_within_a_hundred_steps() -> None:
    cost = lesson(CostModel(), MIDDLE, [16] * 300)
    slow = StepCosts(*(3.0 * getattr(MIDDLE, name) for name in StepCosts.__slots__))
    lesson(cost, slow, [16] * 100)
    expected = slow.seconds(Load(0, 0, 16, 16))
    assert cost.predict(Load(0, 0, 16, 16)) == pytest.approx(expected, rel=0.3)
    lesson(cost, slow, [16] * 300)
    assert cost.predict(Load(0, 0, 16, 16)) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("factor", [5.0, 20.0])
@pytest.mark.parametrize("demand", [8, 20])
def test_capacity_comes_back_when_a_slow_minute_is_over(factor: float, demand: int) -> None:
    """What many rows cost in it must not keep so many from being let in, and seen, ever again."""
    fast = StepCosts(0.005, 0.004, 0.001, 0.005, 0.005, 0.00005)
    slow = StepCosts(*(factor * getattr(fast, name) for name in StepCosts.__slots__))
    cost = warm_up(CostModel(), fast)
    rng = random.Random(4)

    def serve(truth: StepCosts, seconds: float) -> None:
        while seconds > 0.0:
            most = min(demand, cost.capacity(0.056, 16))
            rows = rng.randint(max(1, most - 2), most)
            lesson(cost, truth, [rows], seed=rng.getrandbits(32))
            seconds -= cost.predict(Load(0, 0, most, most))

    serve(fast, 30.0)
    assert cost.capacity(0.056, 16) == 10
    serve(slow, 60.0)
    assert cost.capacity(0.056, 16) <= 4
    serve(fast, 300.0)
    assert cost.capacity(0.056, 16) >= 9


def test_caution_shrinks_as_predictions_come_true() -> None:
    cost = CostModel()
    assert cost.caution == 2.0
    lesson(cost, MIDDLE, [8] * 200, noise=0.02)
    assert cost.caution < 1.06


def test_a_negative_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        CostModel().observe(Load(0, 0, 1, 1), -0.001)


BUCKETED = GraphMachine()


def bucket_seconds(rows: int) -> float:
    return BUCKETED.step_ms(0, rows, Counter({1: rows})) / 1e3


@pytest.mark.parametrize("rows", [1, 64, 65, 256, 257, 500, 513, 900, 1000])
def test_a_machine_of_captured_steps_is_predicted_by_its_buckets(rows: int) -> None:
    rng = random.Random(2)
    cost = BUCKETED.lesson()
    for _ in range(1_000):
        number = rng.randint(1, 1_000)
        cost.observe(Load(0, 0, number, number), bucket_seconds(number) * rng.uniform(0.97, 1.03))
    predicted = cost.predict(Load(0, 0, rows, rows))
    assert predicted == pytest.approx(bucket_seconds(rows), rel=0.08)
    assert cost.costs_at(rows).seconds(Load(0, 0, rows, rows)) == pytest.approx(predicted)


def test_capacity_ends_where_a_dearer_bucket_begins() -> None:
    cost = CostModel(StepCosts(0.010, 0.001, 0.0, 0.0, 0.0, 0.0), row_buckets=(8, 16, 32))
    assert cost.capacity(0.0265, 100) == 16  # the next row makes it 42 ms
    assert cost.capacity(0.0425, 100) == 32
    assert cost.capacity(0.050, 100) == 40  # beyond the last bucket every row counts
