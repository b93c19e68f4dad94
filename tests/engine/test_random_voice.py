"""An engine with random weights, on dimensions small enough for a test."""

from dataclasses import replace
from pathlib import Path

import pytest

from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.make import DIMENSIONS, load_random
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.settings import RANDOM_SIZES, EngineConfig
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.errors import CheckpointError, ConfigError
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from tests.parity import PARITY
from tts_scheduler import CodecRun, Decode, Layout, Prefill, SchedulerConfig, StepPlan

TINY = PARITY / "tiny-custom_voice"


def tiny(demo: ModelConfig) -> ModelConfig:
    """The dimensions of a parity checkpoint; the demo voice's tokenizer, as for all of them."""
    found = read_config(TINY)
    talker = replace(found.talker, text_vocab=demo.talker.text_vocab)
    return replace(found, text=demo.text, talker=talker)


def load(frames: int = 5) -> ModelEngine:
    config = EngineConfig(
        random_weights="demo",
        dtype="float32",
        threads=1,
        max_frames=frames,
        scheduler=SchedulerConfig(slots=2),
        guards=GuardConfig(enabled=False),
    )
    return load_random(config, lambda what, done, total: None, {"demo": tiny})


def speak(engine: ModelEngine, id: str, slot: int) -> tuple[int, str]:
    """Frames and end of an utterance."""
    engine.open(id, UtteranceSpec(seed=slot))
    engine.append(id, [5, 6, 7])
    engine.finish(id)
    prompt = engine.prompt_tokens(UtteranceSpec())
    output = engine.step(StepPlan((Prefill(id, slot, prompt, 3, Layout.FULL_TEXT),)))
    frames = len(output.frames)
    while id not in output.ended:
        decode, run = Decode(id, slot, frames), CodecRun(id, slot, 1)
        output = engine.step(StepPlan((), (decode,), (run,)))
        frames += len(output.frames)
    return frames, output.ended[id]


def test_every_turn_has_the_same_length() -> None:
    engine = load(frames=5)
    assert [speak(engine, f"u{slot}", slot) for slot in range(2)] == [(5, "max_length")] * 2


def test_the_engine_says_that_its_weights_are_random() -> None:
    info = load().info
    assert info.random_weights and "random weights" in info.model


def test_the_folder_that_it_is_started_in_plays_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are no checkpoint's, and perhaps nobody can read them."""
    (tmp_path / "config.json").mkdir()
    monkeypatch.chdir(tmp_path)
    assert not load().info.fingerprint
    with pytest.raises(CheckpointError, match=r"^random weights \(demo dimensions\): 99999 frames"):
        load(frames=99_999)


def test_a_cpu_gets_the_plain_engine() -> None:
    assert isinstance(load(), TorchEngine)


def test_the_settings_know_the_sizes_there_are() -> None:
    assert set(RANDOM_SIZES) == set(DIMENSIONS)


@pytest.mark.parametrize(
    "bad",
    [{"random_weights": "9B"}, {"kind": "fake"}, {"model": "x/y"}, {"guards": GuardConfig()}],
    ids=str,
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, object]) -> None:
    good = {"random_weights": "1.7B", "guards": GuardConfig(enabled=False)}
    assert "random weights" in EngineConfig(**good).name  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        EngineConfig(**{**good, **bad})  # type: ignore[arg-type]
