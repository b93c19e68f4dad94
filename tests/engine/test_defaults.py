"""What the released dimensions get with default flags, and what is said of anything less."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
import torch

from realtime_tts.cli.serve_arguments import add_arguments
from realtime_tts.cli.serve_engine import engine_config
from realtime_tts.engine import make as make_module
from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.devices import Choice
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import EngineInfo, Execution
from realtime_tts.engine.make import make_engine
from realtime_tts.engine.memory import CONTEXT_BYTES, USUAL_POSITIONS
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.engine.torch_setup import chosen_dtype
from realtime_tts.engine.warm_up import taught_scheduler
from realtime_tts.errors import CheckpointError
from realtime_tts.kernels.cuda_predictor_frame import frame_obstacle
from realtime_tts.model import load_model
from realtime_tts.model.code_predictor import CodePredictor
from realtime_tts.model.config_files import read_config
from realtime_tts.model.fused import frame_model
from realtime_tts.model.random_weights import STORED, RandomWeights, released_config
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.test_defaults_gpu import default_config
from tests.parity import PARITY
from tts_scheduler import SchedulerConfig

TINY = PARITY / "tiny-custom_voice"
BEST = Execution(
    "cuda:0", "bfloat16", "NVIDIA H200", "captured", "triton", "persistent", kv_bytes=2**30
)


def defaults(*words: str) -> EngineConfig:
    """The engine of `serve` with these flags, where there is a GPU."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return engine_config(parser.parse_args(words), Choice(("cuda:0",)))


def _quiet(what: str, done: int, total: int) -> None:
    pass


def tiny_engine(*, eager: bool = False, fit: bool = False) -> ModelEngine:
    slots = SchedulerConfig(slots=6)
    config = EngineConfig("tiny", scheduler=slots, fit_slots=fit, eager=eager, max_frames=40)
    return make_engine(config, load_model(TINY), Qwen2Tokenizer.from_folder(TINY))


def test_a_tokenizer_of_another_checkpoint_is_refused() -> None:
    shifted = {char: 385 + index for index, char in enumerate(ALPHABET)}
    with pytest.raises(CheckpointError, match=r"tiny-custom_voice: .* up to 640, .* is 640: take"):
        make_engine(EngineConfig("tiny"), load_model(TINY), Qwen2Tokenizer(shifted, []))


@pytest.mark.parametrize("size", ["1.7B", "0.6B"])
def test_random_weights_run_as_the_released_ones_in_bfloat16_on_a_gpu(size: str) -> None:
    random = defaults("--random-weights", size)
    assert replace(random, voices_dir=None) == default_config("cuda:0", size)
    assert chosen_dtype(random.dtype, random.device, lambda: STORED) is torch.bfloat16
    released = defaults("--model", "Qwen/any")
    assert (
        replace(random, random_weights=None, model="Qwen/any", guards=released.guards) == released
    )


class OnCuda:
    """A tensor without memory, said to be on a GPU."""

    device = torch.device("cuda:0")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.dtype, self._length = tensor.dtype, len(tensor)

    def __len__(self) -> int:
        return self._length


@pytest.mark.parametrize("size", ["1.7B", "0.6B"])
def test_the_released_code_predictor_has_a_persistent_kernel_in_bfloat16_on_an_h200(
    size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, meta = released_config(size, read_config(TINY).text), torch.device("meta")
    width, groups = config.talker.transformer.hidden, config.talker.code_groups

    def obstacle(dtype: torch.dtype, capability: tuple[int, int]) -> str | None:
        weights = RandomWeights(device=meta, dtype=dtype, stored=STORED)
        predictor = CodePredictor(config.predictor, width, groups, weights, meta, dtype)
        model = frame_model(predictor)
        assert model is not None
        gpu = SimpleNamespace(
            name="NVIDIA GPU", major=capability[0], minor=capability[1], multi_processor_count=132
        )
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
        return frame_obstacle(replace(model, norm=OnCuda(model.norm)))  # type: ignore[arg-type]

    assert obstacle(torch.bfloat16, (9, 0)) is None
    assert "torch.float32" in str(obstacle(torch.float32, (9, 0)))
    assert "compute capability 9.0" in str(obstacle(torch.bfloat16, (8, 0)))


def test_what_runs_is_told_by_each_engine() -> None:
    plain = tiny_engine()
    assert plain.info.executions == (Execution("cpu", "float32"),)
    captured = CapturedEngine(
        plain.model,
        Qwen2Tokenizer.from_folder(TINY),
        name="tiny",
        slots=2,
        kv_positions=400,
        max_frames=40,
    )
    told = captured.info.executions[0]
    assert (told.programs, told.kernels) == ("eager", "torch")
    assert told.talker == told.predictor == "separate"
    talker = plain.model.config.talker.transformer
    assert told.kv_bytes == 400 * 2 * talker.layers * talker.kv_heads * talker.head_dim * 4
    over_the_wire = msgspec.msgpack.encode(captured.info)
    assert msgspec.msgpack.decode(over_the_wire, type=EngineInfo).executions == (told,)


def test_a_cpu_and_eager_get_plain_modules_and_their_slots_as_they_are() -> None:
    for engine in (tiny_engine(fit=True), tiny_engine(eager=True)):
        assert isinstance(engine, TorchEngine) and engine.info.slots == 6


class OnGpu:
    """Notes what a `CapturedEngine` is made of."""

    def __init__(self, model: object, tokenizer: object, **settings: object) -> None:
        self.settings, self.execution = settings, BEST


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., OnGpu]:
    """Make the engine of the released dimensions on an H200 with so many GiB free."""

    def make(free: int, *, fit: bool = False, gpu_memory: str | None = None) -> OnGpu:
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free * 2**30, 140 * 2**30))
        monkeypatch.setattr(make_module, "CapturedEngine", OnGpu)
        config = released_config("1.7B", read_config(TINY).text)
        talker = SimpleNamespace(device=torch.device("cuda:0"), dtype=torch.bfloat16)
        model = SimpleNamespace(talker=talker, config=config, max_frames=8191)
        settings = EngineConfig(
            "1.7B",
            device="cuda:0",
            scheduler=SchedulerConfig(slots=512),
            fit_slots=fit,
            gpu_memory=gpu_memory,
        )
        engine = make_engine(settings, model, None)  # type: ignore[arg-type]
        assert isinstance(engine, OnGpu)
        return engine

    return make


def test_a_gpu_gets_captured_programs_for_what_fits(
    on_gpu: Callable[..., OnGpu],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(make_module, "triton_available", lambda: True)
    with caplog.at_level("INFO"):
        whole = on_gpu(134, fit=True).settings
    assert whole["slots"] == 512
    assert caplog.messages == ["engine.memory"], "and nothing that is slower than it could be"
    monkeypatch.setattr(make_module, "triton_available", lambda: False)
    on_gpu(134)
    told = caplog.records[-1]
    assert (told.getMessage(), told.levelname) == ("engine.fallback", "WARNING")
    assert "Triton is not installed" in told.__dict__["fields"]["reason"]
    part = on_gpu(24, fit=True).settings
    assert part["slots"] == 128, "others have taken most of it"
    positions = part["kv_positions"]
    assert isinstance(positions, int) and positions >= 128 * USUAL_POSITIONS
    assert on_gpu(24).settings["slots"] == 512, "asked for"


def test_an_engine_keeps_to_its_budget_of_the_gpu(
    on_gpu: Callable[..., OnGpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 4 * 2**30)
    monkeypatch.setattr(
        torch.cuda, "set_per_process_memory_fraction", lambda share: limits.append(share)
    )
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    few = on_gpu(134, fit=True, gpu_memory="8GiB").settings
    assert limits == [(8 * 2**30 - CONTEXT_BYTES) / (140 * 2**30)]
    assert few["slots"] == 16
    assert on_gpu(134, fit=True, gpu_memory="95%").settings["slots"] == 512


def test_the_scheduler_has_the_slots_that_fit() -> None:
    engine = FakeEngine(FakeEngineConfig(slots=6, step_seconds=0.0))
    few = taught_scheduler(engine, SchedulerConfig(slots=512), _quiet)
    assert few.config.slots == 6 and few.config.queue_length == 4
    given = taught_scheduler(engine, SchedulerConfig(slots=3), _quiet)
    assert given.config.slots == 3
