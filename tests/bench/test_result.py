import json
from dataclasses import asdict, fields

import pytest

from realtime_tts.bench.observation import Observation, Observed
from realtime_tts.bench.result import DEFINITIONS, LevelResult, StepTimes, level_result
from realtime_tts.bench.settings import Level, Mode
from tests.bench.turns import turn_result
from tts_scheduler.report import Trace

LEVEL = Level(Mode.CLOSED, sessions=2)
LOUD_SECOND = (1_000).to_bytes(2, "little") * 24_000


def turn(ttfa: float, gap: float = 0.0, *, held_ms: float = 0.0) -> Observation:
    """Two seconds of speech; the second one comes `gap` after the listener ran out."""
    seen = Observation(text_chars=10, trace=Trace(asked_at=100.0))
    seen.packet(LOUD_SECOND, 100.0 + ttfa)
    seen.packet(LOUD_SECOND, 100.0 + ttfa + (1.0 + gap if gap else 0.5))
    server_ttfa = ttfa * 1000 - 1
    seen.result = turn_result(
        ttfa_ms=server_ttfa, underruns=int(gap > 0), held_ms=held_ms, text_chars=10
    )
    seen.layout = "streaming"
    return seen


def failed(code: str) -> Observation:
    return Observation(text_chars=10, trace=Trace(asked_at=100.0), error=code)


def interrupted(seconds: float) -> Observation:
    seen = turn(0.1)
    seen.interrupt_seconds = seconds
    return seen


def test_turns_are_counted_once_each() -> None:
    turns = [
        turn(0.1),
        turn(0.2),
        interrupted(0.004),
        failed("overloaded"),
        failed("numerics"),
        failed("overloaded"),
    ]
    result = level_result(LEVEL, Observed(turns, 4.0, 2), None)
    assert (result.turns, result.complete, result.interrupted, result.failed) == (6, 2, 1, 3)
    assert result.errors == {"overloaded": 2, "numerics": 1}
    assert result.reasons == {"complete": 3}
    assert result.layouts == {"streaming": 3}
    assert result.interrupt_ms is not None and result.interrupt_ms.p50 == 4.0


def test_latency_comes_from_the_client_and_beside_it_from_the_server() -> None:
    turns = [turn(0.1), turn(0.2), turn(0.3)]
    result = level_result(LEVEL, Observed(turns, 4.0, 2), None)
    assert result.ttfa_raw_ms is not None and result.ttfa_server_ms is not None
    assert result.ttfa_raw_ms.p50 == pytest.approx(200.0)
    assert result.ttfa_server_ms.p50 == pytest.approx(199.0)
    assert result.ttfa_audible_ms == result.ttfa_raw_ms  # it begins with sound


def test_gaps_show_in_every_figure_about_them() -> None:
    turns = [turn(0.1), turn(0.1, gap=0.25, held_ms=30.0)]
    result = level_result(LEVEL, Observed(turns, 4.0, 2), None)
    assert (result.underruns, result.underruns_server) == (1, 1)
    assert (result.viability, result.viable_turns) == (0.5, 0.5)
    assert result.worst_gap_ms == 250.0
    assert result.held_ms is not None and result.held_ms.p99 == pytest.approx(30.0, abs=1)


def test_a_player_that_waits_first_does_not_hear_a_short_gap() -> None:
    turns = [turn(0.1, gap=0.09), turn(0.1, gap=0.11)]
    result = level_result(LEVEL, Observed(turns, 4.0, 2), None)
    assert (result.underruns, result.underruns_buffered) == (2, 1)


def test_speed_comes_from_the_unpaced_pass_alone() -> None:
    paced = Observed([turn(0.1)], 4.0, 1)
    without = level_result(LEVEL, paced, None)
    assert without.rtf is None and without.capacity is None
    assert without.audio_per_second == 0.5
    unpaced = Observed([turn(0.1), turn(0.3), failed("overloaded")], 1.6, 2, busy=(100.3, 100.8))
    result = level_result(LEVEL, paced, unpaced)
    assert result.rtf is not None
    assert result.rtf.p50 == pytest.approx((0.3 + 0.4) / 2)  # (0.6 + 0.8) / 2 s for 2 s of speech
    assert result.capacity == 4.0  # the second packets of both, in half a second
    assert result.unpaced_failed == 1


def test_a_level_where_nothing_worked_has_no_figures_and_no_crash() -> None:
    result = level_result(LEVEL, Observed([failed("overloaded")], 0.0, 2), None)
    assert result.ttfa_raw_ms is None
    assert result.audio_per_second == 0.0
    json.dumps(asdict(result))


def test_every_figure_that_needs_words_has_them() -> None:
    names = {field.name for field in fields(LevelResult)}
    assert set(DEFINITIONS) <= names


def test_a_gap_no_longer_than_the_wait_for_text_is_not_ours() -> None:
    turns = [turn(0.1), turn(0.1, 0.3, held_ms=400.0), turn(0.1, 0.3, held_ms=200.0), turn(0.1)]
    result = level_result(LEVEL, Observed(turns, 4.0, 2), None)
    assert result.viable_turns == 0.5
    assert result.kept_turns == 0.75
    assert level_result(LEVEL, Observed([], 0.0, 2), None).kept_turns == 1.0


def test_what_was_measured_beside_the_turns_is_in_the_result() -> None:
    late = turn(0.1)
    late.start_lag = 0.002
    seen = Observed([late, turn(0.1)], 4.0, 1, late=[0.001, 0.005], cpu=0.25, processes=3)
    steps = (StepTimes(1, "decode", 5, 2.0),)
    result = level_result(LEVEL, seen, None, steps, (), (1203,))
    assert result.start_lag_ms is not None and result.start_lag_ms.p50 == 2.0
    assert result.client_lag_ms is not None and result.client_lag_ms.max == 5.0
    assert (result.client_cpu, result.client_processes, result.step_ms) == (0.25, 3, 2.0)
    assert result.steps == steps and result.gpu_memory_mib == (1203,)


def test_the_last_byte_counts_in_steps_and_on_the_air_alone() -> None:
    on_air, late, done = interrupted(0.02), interrupted(0.03), interrupted(0.001)
    on_air.last_byte_seconds, late.last_byte_seconds = 0.0, 0.012
    steps = (StepTimes(2, "decode", 5, 8.0),)
    result = level_result(LEVEL, Observed([on_air, late, done], 4.0, 2), None, steps)
    assert (result.interrupted, result.interrupts_on_air) == (3, 2)
    assert result.last_byte_ms is not None and result.last_byte_ms.max == 12.0
    assert result.last_byte_steps is not None and result.last_byte_steps.max == 1.5
