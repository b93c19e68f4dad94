from realtime_tts.bench.result import StepTimes, between, mean_ms, read_steps
from realtime_tts.metrics import Metrics, row_bucket


def test_rows_are_counted_in_powers_of_two() -> None:
    assert [row_bucket(rows) for rows in (0, 1, 2, 3, 4, 5, 64, 65)] == [0, 1, 2, 4, 4, 8, 64, 128]


def test_step_times_are_exact_and_only_those_between_two_readings() -> None:
    metrics = Metrics()
    metrics.step(0.5, 0, 3)  # before: not counted
    before = read_steps(metrics.render().text.decode())
    metrics.step(0.010, 0, 3)
    metrics.step(0.020, 0, 4)
    metrics.step(0.004, 0, 1)
    metrics.step(0.100, 1, 0)
    metrics.step(0.001, 0, 0)
    after = read_steps(metrics.render().text.decode())
    assert between(before, after) == (
        StepTimes(0, "decode", 1, 1.0),
        StepTimes(1, "decode", 1, 4.0),
        StepTimes(1, "prefill", 1, 100.0),
        StepTimes(4, "decode", 2, 15.0),
    )


def test_a_server_that_does_not_tell_has_no_step_times() -> None:
    assert between({}, read_steps("")) == ()
    assert read_steps("tts_engine_step_seconds_sum 3.0\n# HELP x y\n") == {}


def test_the_mean_step_is_weighted_and_leaves_out_steps_without_frames() -> None:
    steps = [
        StepTimes(0, "decode", 9, 1.0),
        StepTimes(2, "decode", 3, 4.0),
        StepTimes(2, "prefill", 1, 8.0),
    ]
    assert mean_ms(steps) == 5.0
    assert mean_ms(steps, 2, "decode") == 4.0
    assert mean_ms(steps, 4) is None
    assert mean_ms([]) is None
