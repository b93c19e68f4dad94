"""Stages of a real engine's steps, on dimensions small enough for a test."""

import json
from pathlib import Path

import pytest
import torch

from realtime_tts import demo_voice
from realtime_tts.cli import main
from realtime_tts.cli.profile import rows_of
from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.make import load_random
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import ConfigError
from realtime_tts.profiler.machine import Limits, fastest
from realtime_tts.profiler.report import Stage, Widths, bucket
from realtime_tts.profiler.stages import CODEC, PREDICTOR, TALKER, frames_needed, time_stages
from realtime_tts.profiler.stages import StageTimes as Times
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tts_scheduler import SchedulerConfig

FULL = (torch.float32, torch.float32)
LIMITS = Limits("test", 1e9, {"float32": 1e9}, cache_bytes=0)
REPEAT = 2


@pytest.fixture(scope="module")
def engine() -> ModelEngine:
    config = EngineConfig(
        random_weights="demo",
        dtype="float32",
        threads=1,
        max_frames=frames_needed(REPEAT),
        scheduler=SchedulerConfig(slots=2),
        guards=GuardConfig(enabled=False),
    )
    return load_random(config, lambda what, done, total: None)


@pytest.mark.parametrize("rows", [1, 2])
def test_every_stage_is_seen_and_the_engine_is_left_as_it_was(
    engine: ModelEngine, rows: int
) -> None:
    times = time_stages(engine, rows, context=20, repeat=REPEAT)
    assert times.rows == rows and times.step > 0 and times.host > 0
    assert all(times.stages[stage] > 0 for stage in (TALKER, PREDICTOR, CODEC))
    model = engine.model
    for owner in (model.talker, model.predictor, model.codec):
        assert not {"decode", "logits", "codes"} & set(vars(owner))


def test_a_captured_engine_is_timed_by_its_programs(engine: ModelEngine) -> None:
    tokenizer = Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
    captured = CapturedEngine(engine.model, tokenizer, name="noise", slots=2, kv_positions=300)
    times = time_stages(captured, 2, context=20, repeat=REPEAT)
    assert all(times.stages[stage] > 0 for stage in (TALKER, PREDICTOR, CODEC))
    assert times.host > 0 and "run" not in vars(captured.steps.graphs)


def test_figures_are_exact(engine: ModelEngine) -> None:
    times = Times(2, 30, 0.016, {TALKER: 0.004, PREDICTOR: 0.006, CODEC: 0.005}, 0.001)
    found = bucket(engine.model.config, times, FULL, LIMITS, Widths(4, 4, 4))
    assert (found.rows, found.context, found.step_ms) == (2, 30, 16.0)
    assert found.real_time == 10.0  # two rows of 80 ms in 16
    assert [stage.name for stage in found.stages] == ["talker", "predictor", "codec", "host"]
    assert [stage.ms for stage in found.stages] == [4.0, 6.0, 5.0, 1.0]
    talker, host = found.stages[0], found.stages[3]
    assert talker.roofline_ms is not None and talker.times_roofline is not None
    assert talker.roofline_ms * talker.times_roofline == pytest.approx(4.0, rel=0.05)
    assert host == Stage("host", 1.0, None, None, 0.0, 0.0)


def test_packed_weights_are_counted_as_they_lie_in_memory(engine: ModelEngine) -> None:
    model = engine.model
    widths = Widths.of(model)
    assert widths.talker == min(layer.qkv.itemsize for layer in model.talker.layers)
    assert widths.codec == 4  # drawn in float32, which half precision does not hold
    whole, packed = (
        bucket(model.config, time, FULL, LIMITS, width).stages[0].megabytes
        for time in (Times(1, 0, 1.0, dict.fromkeys((TALKER, PREDICTOR, CODEC), 0.1), 0.1),)
        for width in (Widths(4, 4, 4), Widths(2, 4, 4))
    )
    assert whole / 2 < packed < whole / 1.9  # the one position of state is not packed


def test_the_fastest_of_several_runs_counts() -> None:
    calls: list[int] = []
    assert fastest(lambda: calls.append(1), torch.device("cpu"), seconds=0.0) >= 0.0
    assert len(calls) >= 4  # one to warm up, three to measure


def test_rows_that_cannot_be_are_refused() -> None:
    assert rows_of("1,4") == [1, 4]
    for bad in ("0", "1,x", ""):
        with pytest.raises(ConfigError):
            rows_of(bad)


def test_the_command_prints_a_table_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("realtime_tts.profiler.machine.measure_limits", lambda *_: LIMITS)
    words = ["profile", "--random-weights", "demo", "--rows", "1", "--repeat", "2"]
    words += ["--context", "20", "--threads", "1", "--json", str(tmp_path / "p.json")]
    assert main(words) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].startswith("RANDOM WEIGHTS: random weights (demo dimensions), float32")
    assert table[4] == (
        "| rows | talker ms | predictor ms | codec ms | host ms | step ms | roofline ms "
        "| x real time |"
    )
    found = json.loads((tmp_path / "p.json").read_text())
    assert found["random_weights"] is True and found["buckets"][0]["rows"] == 1
    assert found["command"].startswith("realtime-tts profile --random-weights demo")


def test_flags_that_cannot_work_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--rows", "x"]) == 2
    assert main(["profile", "--repeat", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err
